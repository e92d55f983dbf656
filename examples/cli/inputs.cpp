// SPDX-License-Identifier: Apache-2.0
#include "inputs.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "elements.hpp"
#include "exit.hpp"

namespace cli {
namespace {

/// The element types that a file of each kind may have.
constexpr const char* tensor_types = "float32, float16, or uint16 holding bfloat16 with --dtype bf16";
constexpr const char* offset_types = "int32, int64";
constexpr const char* float_types = "float32";

/// "q [2, 128, 4, 64]", with the file, as shapes stand in errors.
struct named_array {
  std::string name, path;
  npy::array array;

  std::string shown() const { return name + " " + npy::to_string(array.shape); }
};

[[noreturn]] void reject_type(const named_array& a, const char* allowed) {
  bad_input(a.path + ": " + a.name + " is " + npy::name_of(a.array.type) + "; allowed: " + allowed);
}

named_array read_named(const std::string& name, const std::string& path, const char* allowed_types) {
  try {
    return {name, path, npy::read(path, std::string(allowed_types) + " (little-endian)")};
  } catch (const npy::error& e) {
    bad_input(e.what());
  }
}

/// The element type that the files and --dtype agree on.
octavo::dtype element_of(const named_array& a, const std::optional<octavo::dtype>& asked) {
  const npy::dtype stored = a.array.type;
  if (stored != npy::dtype::float32 && stored != npy::dtype::float16 && stored != npy::dtype::uint16)
    reject_type(a, tensor_types);
  if (stored == npy::dtype::uint16 && asked != octavo::dtype::bf16)
    bad_input(a.path + ": " + a.name + " is uint16, which is read as bfloat16 with --dtype bf16 only");
  if (stored == npy::dtype::float16 && asked && asked != octavo::dtype::f16)
    bad_input(a.path + ": " + a.name + " is float16, but --dtype is " + name_of(*asked) + "; allowed with it: float32" +
              (asked == octavo::dtype::bf16 ? " or uint16" : ""));
  if (asked) return *asked;
  return stored == npy::dtype::float16 ? octavo::dtype::f16 : octavo::dtype::f32;
}

void warn_if_not_finite(const std::string& name, const npy::array& a, octavo::dtype type) {
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const float x = element_at(a.data.data(), type, i);
    if (std::isfinite(x)) continue;
    npy::extents index(a.shape.size());
    std::int64_t rest = i;
    for (std::size_t axis = a.shape.size(); axis-- > 0; rest /= a.shape[axis]) index[axis] = rest % a.shape[axis];
    std::fprintf(stderr, "octavo: warning: %s has %s at %s; the run goes on\n", name.c_str(),
                 std::isnan(x) ? "NaN" : "Inf", npy::to_string(index).c_str());
    return;
  }
}

void require_shape(const named_array& a, const npy::extents& expected, const std::string& because) {
  if (a.array.shape != expected) bad_input(a.shown() + " must be " + npy::to_string(expected) + ": " + because);
}

void require_rank(const named_array& a, bool packed) {
  if (a.array.shape.size() == (packed ? 3u : 4u)) return;
  bad_input(a.shown() + (packed ? " must be [total, h, d] beside --cu-seqlens-q and --cu-seqlens-kv"
                                : " must be [b, s, h, d]; packed documents [total, h, d] need --cu-seqlens-q and "
                                  "--cu-seqlens-kv"));
}

std::int64_t offset_at(const npy::array& a, std::int64_t i) {
  return a.type == npy::dtype::int64 ? a.as<std::int64_t>()[i] : a.as<std::int32_t>()[i];
}

/// Checks cumulative offsets against the rows that they cut up; returns the longest document.
std::int64_t check_offsets(const named_array& cu, std::int64_t total, const std::string& what) {
  const npy::array& a = cu.array;
  if (a.type != npy::dtype::int32 && a.type != npy::dtype::int64) reject_type(cu, offset_types);
  if (a.shape.size() != 1 || a.size() < 1) bad_input(cu.shown() + " must be [documents + 1]");
  if (offset_at(a, 0) != 0) bad_input(cu.name + " must begin with 0, not " + std::to_string(offset_at(a, 0)));
  std::int64_t longest = 0;
  for (std::int64_t i = 1; i < a.size(); ++i) {
    const std::int64_t before = offset_at(a, i - 1), here = offset_at(a, i);
    if (here < before)
      bad_input(cu.name + " must not decrease, but goes from " + std::to_string(before) + " to " +
                std::to_string(here) + " at index " + std::to_string(i));
    longest = std::max(longest, here - before);
  }
  if (const std::int64_t last = offset_at(a, a.size() - 1); last > total)
    bad_input(cu.name + " ends at " + std::to_string(last) + ", beyond the " + std::to_string(total) + " rows of " +
              what);
  return longest;
}

/// The extents of q, k, v; ends the program where they contradict each other.
void fill_extents(octavo::problem& p, const named_array& q, const named_array& k, const named_array& v) {
  for (const named_array* a : {&q, &k, &v}) require_rank(*a, p.packed);
  const std::size_t h = p.packed ? 1 : 2;  // the axis of heads; rows stand before it, channels behind it
  const auto &qs = q.array.shape, &ks = k.array.shape, &vs = v.array.shape;
  if (!p.packed && qs[0] != ks[0]) bad_input(q.shown() + " and " + k.shown() + " must have the same b");
  if (qs[h + 1] != ks[h + 1]) bad_input(q.shown() + " and " + k.shown() + " must have the same d_qk");
  if (!std::equal(ks.begin(), ks.end() - 1, vs.begin()))
    bad_input(k.shown() + " and " + v.shown() + " must agree in all but the last extent");
  p.h_q = qs[h], p.h_kv = ks[h], p.d_qk = qs[h + 1], p.d_v = vs[h + 1];
  if (p.h_q < 1 || p.h_kv < 1 || p.h_q % p.h_kv != 0)
    bad_input(q.shown() + ", " + k.shown() + ": h_q must be a positive multiple of h_kv");
  if (p.d_qk < 1 || p.d_v < 1)
    bad_input(q.shown() + ", " + v.shown() + ": d must not be 0; allowed: 32, 64, 96, 128, 192, 256");
  if (p.packed)
    p.total_q = qs[0], p.total_kv = ks[0];
  else
    p.b = qs[0], p.s_q = qs[1], p.s_kv = ks[1];
}

void fill_documents(octavo::problem& p, const named_array& cu_q, const named_array& cu_kv) {
  p.s_q = check_offsets(cu_q, p.total_q, "q");
  p.s_kv = check_offsets(cu_kv, p.total_kv, "k");
  if (cu_q.array.size() != cu_kv.array.size())
    bad_input(cu_q.shown() + " and " + cu_kv.shown() + " must name the same number of documents");
  p.b = cu_q.array.size() - 1;
}

npy::array read_float32(const std::string& name, const std::string& path, const npy::extents& shape,
                        const std::string& layout) {
  named_array a = read_named(name, path, float_types);
  if (a.array.type != npy::dtype::float32) reject_type(a, float_types);
  require_shape(a, shape, layout);
  warn_if_not_finite(name, a.array, octavo::dtype::f32);
  return std::move(a.array);
}

}  // namespace

npy::array to_element_type(npy::array from, octavo::dtype type, const std::string& name) {
  if (from.type != npy::dtype::float32 || type == octavo::dtype::f32) return from;
  npy::array to{type == octavo::dtype::f16 ? npy::dtype::float16 : npy::dtype::uint16, from.shape, {}};
  to.data.resize(from.data.size() / 2);
  std::int64_t overflowed = 0;
  for (std::int64_t i = 0; i < from.size(); ++i) {
    const float x = from.as<float>()[i];
    set_element(to.data.data(), type, i, x);
    overflowed += std::isfinite(x) && !std::isfinite(element_at(to.data.data(), type, i));
  }
  if (overflowed > 0)
    std::fprintf(stderr, "octavo: warning: %lld elements of %s are finite in the file, but beyond the range of %s\n",
                 static_cast<long long>(overflowed), name.c_str(), name_of(type));
  return to;
}

inputs read_inputs(const problem_options& options) {
  inputs in;
  octavo::problem& p = in.problem;
  p.packed = !options.cu_seqlens_q.empty();
  p.mask = options.mask;
  p.softmax_scale = options.scale;
  p.softcap = options.softcap;
  p.deterministic = options.deterministic;

  named_array q = read_named("q", options.q, tensor_types), k = read_named("k", options.k, tensor_types),
              v = read_named("v", options.v, tensor_types);
  std::vector<named_array*> tensors{&q, &k, &v};
  named_array dout;
  if (!options.dout.empty()) {
    dout = read_named("dout", options.dout, tensor_types);
    tensors.push_back(&dout);
  }
  p.element = element_of(q, options.element);
  for (const named_array* a : tensors)
    if (const octavo::dtype type = element_of(*a, options.element); type != p.element)
      bad_input("q is " + std::string(name_of(p.element)) + ", but " + a->name + " is " + name_of(type) +
                "; allowed: one element type for all (--dtype f16 rounds float32 files)");

  fill_extents(p, q, k, v);
  if (p.packed) {
    named_array cu_q = read_named("cu_seqlens_q", options.cu_seqlens_q, offset_types);
    named_array cu_kv = read_named("cu_seqlens_kv", options.cu_seqlens_kv, offset_types);
    fill_documents(p, cu_q, cu_kv);
    in.cu_seqlens_q = std::move(cu_q.array);
    in.cu_seqlens_kv = std::move(cu_kv.array);
  }
  if (!options.dout.empty()) {
    npy::extents o = q.array.shape;
    o.back() = p.d_v;
    require_shape(dout, o, "the shape of O, that is of " + q.shown() + " with the last extent of " + v.shown());
  }
  if (!options.sink.empty()) {
    in.sink = read_float32("sink", options.sink, {p.h_q}, "[h_q]");
    p.sink = true;
  }
  if (options.key_centring == "batch") {
    p.key_centring = octavo::key_centring::batch;
  } else if (options.key_centring != "off") {
    if (std::error_code ignored; !std::filesystem::exists(options.key_centring, ignored))
      bad_input("--key-centring " + options.key_centring +
                ": no such file; allowed: off, batch, or a float32 file [b, h_kv, d_qk]");
    in.key_shift = read_float32("key-centring", options.key_centring, {p.b, p.h_kv, p.d_qk},
                                p.packed ? "[documents, h_kv, d_qk]" : "[b, h_kv, d_qk]");
    p.key_centring = octavo::key_centring::given;
  }
  require(octavo::validate(p));

  for (named_array* a : tensors) {
    a->array = to_element_type(std::move(a->array), p.element, a->name);
    warn_if_not_finite(a->name, a->array, p.element);
  }
  in.q = std::move(q.array), in.k = std::move(k.array), in.v = std::move(v.array);
  if (!options.dout.empty()) in.dout = std::move(dout.array);
  return in;
}

}  // namespace cli
