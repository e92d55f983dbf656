// SPDX-License-Identifier: Apache-2.0
// Trains one small language model under several attention configs, from the same weights on the same batches, and
// compares what they reach. See README.md.
//
// Exit codes: 0 done; 1 a failure of the run or of the self-check; 2 bad input; 3 not supported by an engine.
#include <cstdio>

#include "errors.hpp"
#include "jobs.hpp"
#include "report.hpp"
#include "self_check.hpp"

namespace train_lm {
namespace {

void require_supported(const std::vector<arm>& arms, const model_shape& shape) {
  for (const arm& a : arms) {
    const octavo::support s = a.engine.supports(problem_of(a, shape));
    if (!s) throw unsupported_error(a.name + ": " + s.reason.c_str());
  }
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw input_error("--out: cannot make the folder " + folder.string() + ": " + failed.message());
}

int run(const options& o) {
  const std::vector<arm> arms = make_arms(o.arms, o.recipe, o.key_centring);
  require_supported(arms, o.shape);
  if (o.self_check) return self_check(make_arms(std::vector<std::string>{"bf16"}, o.recipe, false).front()) ? 0 : 1;
  const corpus text(read_text(o.text), o.shape.context);
  text.held_out(o.shape);  // too little text is said now, not after the training
  make_folder(o.out);

  const std::vector<run_result> runs = train_all(o, arms, text);

  write_curves(o.out / "curves.csv", runs, arms, o.shape.layers);
  write_summary(o.out / "summary.csv", runs, arms, o.shape.layers);
  print_table(summarise(runs, arms, o, arms.front().name == "bf16"), o, text);
  const auto picture = o.out / "curves.png";
  const std::string no_picture = draw_curves(picture, runs, arms, o);
  std::printf("\n%s\n", no_picture.empty() ? ("Picture: " + picture.string()).c_str() : no_picture.c_str());
  const auto captured = [&o](const char* name) { return (o.out / "captured" / name).string(); };
  std::printf("octavo audit --dtype bf16 --causal --q %s --k %s --v %s --dout %s --out %s\n", captured("q.npy").c_str(),
              captured("k.npy").c_str(), captured("v.npy").c_str(), captured("dout.npy").c_str(),
              (o.out / "audit").string().c_str());
  return 0;
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
    return o ? run(*o) : code;
  } catch (const input_error& e) {
    return fail(e, 2);
  } catch (const unsupported_error& e) {
    return fail(e, 3);
  } catch (const std::exception& e) {
    return fail(e, 1);
  }
}
