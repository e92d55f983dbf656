// SPDX-License-Identifier: Apache-2.0
// Trains one small language model under several attention configs, from the same weights on the same batches, and
// compares what they reach. See README.md.
//
// Exit codes: 0 done; 1 a failure of the run or of the self-check; 2 bad input; 3 not supported by octavo.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>

#include "captured.hpp"
#include "errors.hpp"
#include "jobs.hpp"
#include "output_folder.hpp"
#include "report.hpp"
#include "self_check.hpp"

namespace train_lm {
namespace {

void require_supported(const std::vector<arm>& arms, const model_shape& shape) {
  for (const arm& a : arms) {
    const octavo::support s = a.supports(problem_of(a, shape));
    if (!s) throw unsupported_error(a.name + ": " + s.reason.c_str());
  }
}

constexpr const char* curves = "curves.csv";
constexpr const char* summary = "summary.csv";
constexpr const char* picture = "curves.png";

std::vector<std::string> result_names() {
  std::vector<std::string> names = {curves, summary, picture};
  names.insert(names.end(), std::begin(captured_files), std::end(captured_files));
  return names;
}

/// Opened before the training, so that a file that cannot be written is found out then.
std::ofstream open_captured_path_file(const options& o) {
  std::ofstream file;
  if (o.captured_path_file.empty()) return file;
  file.open(o.captured_path_file, std::ios::trunc);
  if (!file) throw input_error("--captured-path-file: " + o.captured_path_file.string() + " cannot be written");
  return file;
}

/// Where the captured tensors are: a line for the user, or for the script that asked.
void tell_captured(std::ofstream& asked, const options& o, const char* this_program) {
  if (o.captured_path_file.empty()) {
    std::printf("Audit of the captured tensors:\n%s\n", audit_command(this_program, o.out).c_str());
    return;
  }
  asked << (o.out / captured_files[0]).parent_path().string() << '\n';
  asked.close();
  if (!asked) throw std::runtime_error(o.captured_path_file.string() + ": cannot be written");
}

int run(const options& o, const char* this_program) {
  if (o.self_check) return self_check(make_arms(std::vector<std::string>{"bf16"}, o.recipe, false).front()) ? 0 : 1;
  const std::vector<arm> arms = make_arms(o.arms, o.recipe, o.key_centring);
  require_supported(arms, o.shape);
  const corpus text(read_text(o.text), o.shape.context);
  text.held_out(o.shape);  // too little text is said now, not after the training
  output_folder out(o.out, result_names());
  std::ofstream captured_path = open_captured_path_file(o);

  const std::vector<run_result> runs = train_all(o, arms, text);

  write_curves(out.add(curves), runs, arms, o.shape.layers);
  write_summary(out.add(summary), runs, arms, o.shape.layers);
  const std::string no_picture = draw_curves(out.add(picture), runs, arms, o);
  if (!no_picture.empty()) out.leave_out(picture);
  const captured_tensors* captured = runs.front().captured.get();
  if (captured != nullptr)
    write_captured(out, *captured);
  else
    for (const char* name : captured_files) out.leave_out(name);
  out.commit();

  print_table(summarise(runs, arms, o, arms.front().name == "bf16"), o, text);
  std::printf("\n%s\n", no_picture.empty() ? ("Picture: " + (o.out / picture).string()).c_str() : no_picture.c_str());
  if (captured != nullptr)
    tell_captured(captured_path, o, this_program);
  else
    std::printf("No captured tensors to audit: the first run diverged.\n");
  return 0;
}

/// What was printed, too, can meet a full disk.
void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::runtime_error("standard output cannot be written");
}

int fail(const std::exception& e, int code) {
  std::fprintf(stderr, "train_lm: %s\n", e.what());
  return code;
}

}  // namespace
}  // namespace train_lm

int main(int argc, char** argv) {
  using namespace train_lm;
  try {
    int code = 0;
    const std::optional<options> o = parse(argc, argv, code);
    if (o) code = run(*o, argv[0]);
    finish_output();
    return code;
  } catch (const input_error& e) {
    return fail(e, 2);
  } catch (const unsupported_error& e) {
    return fail(e, 3);
  } catch (const std::bad_alloc&) {
    return fail(std::runtime_error("out of memory"), 1);
  } catch (const std::exception& e) {
    return fail(e, 1);
  }
}
