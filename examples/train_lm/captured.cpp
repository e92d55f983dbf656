// SPDX-License-Identifier: Apache-2.0
#include "captured.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <system_error>

#include "../support/npy.hpp"
#include "model.hpp"

namespace train_lm {
namespace {

/// A path as a POSIX shell reads it.
std::string quoted(const std::filesystem::path& path) {
  const std::string s = path.string();
  const auto plain = [](unsigned char c) { return std::isalnum(c) || (c != 0 && std::strchr("/._-+:,@%", c)); };
  if (!s.empty() && std::ranges::all_of(s, plain)) return s;
  std::string out = "'";
  for (const char c : s) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace

captured_tensors::captured_tensors(const model& m) : shape(m.shape()) {
  shape.batch = std::min<index>(shape.batch, 2);
  const attention& a = m.attention_of_layer(shape.layers - 1);
  const auto size = static_cast<std::size_t>(shape.tokens() * shape.width);
  const auto cut = [size](const std::vector<octavo::bf16>& x) {
    return std::vector<octavo::bf16>(x.data(), x.data() + size);
  };
  q = cut(a.q);
  k = cut(a.k);
  v = cut(a.v);
  dout = cut(a.dout);
}

void write_captured(output_folder& out, const captured_tensors& tensors) {
  const model_shape& s = tensors.shape;
  const std::vector<octavo::bf16>* values[] = {&tensors.q, &tensors.k, &tensors.v, &tensors.dout};
  for (std::size_t i = 0; i < std::size(captured_files); ++i)
    npy::write(out.add(captured_files[i]), npy::dtype::uint16, {s.batch, s.context, s.heads, s.head_dim()},
               values[i]->data());
}

std::string audit_command(const char* this_program, const std::filesystem::path& out) {
  const std::filesystem::path beside = std::filesystem::path(this_program).parent_path() / "octavo";
  std::error_code ignored;
  const bool found = beside.has_parent_path() && std::filesystem::is_regular_file(beside, ignored);
  std::string command = (found ? quoted(beside) : "octavo") + " audit --dtype bf16 --causal";
  const char* options[] = {" --q ", " --k ", " --v ", " --dout "};
  for (std::size_t i = 0; i < std::size(captured_files); ++i) command += options[i] + quoted(out / captured_files[i]);
  return command + " --out " + quoted(out / "audit");
}

}  // namespace train_lm
