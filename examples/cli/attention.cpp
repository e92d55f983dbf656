// SPDX-License-Identifier: Apache-2.0
// octavo attention: one forward and, with --dout, one backward; every result as a .npy file, and a report.
#include <octavo/backend/trace.hpp>

#include <optional>

#include "call.hpp"
#include "commands.hpp"
#include "output_folder.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace cli {
namespace {

/// Every name that some run of this command writes.
std::vector<std::string> result_names() {
  std::vector<std::string> names{"report.json", "o.npy",     "lse.npy",   "o_residual.npy", "dq.npy", "dk.npy",
                                 "dv.npy",      "dsink.npy", "delta.npy", "rowsum.npy",     "l1.npy"};
  for (const char* tensor : {"q", "k", "v", "do"})
    for (const char* kind : {"8", "_scale", "8_columnwise", "_scale_columnwise"})
      names.push_back(std::string(tensor) + kind + ".npy");
  return names;
}

void write(output_folder& out, const std::string& name, const std::optional<float_array>& a) {
  if (a) out.add_array(name, npy::dtype::float32, a->shape, a->values.data());
}

void write(output_folder& out, const std::string& payload, const std::string& scale, const host_image& image) {
  out.add_array(payload, npy::dtype::uint8, image.shape, image.bytes.data());
  out.add_array(scale, npy::dtype::float32, image.scale_shape, image.scales.data());
}

void write(output_folder& out, const results& r) {
  write(out, "o.npy", r.o);
  write(out, "lse.npy", r.lse);
  write(out, "o_residual.npy", r.o_residual);
  write(out, "dq.npy", r.dq);
  write(out, "dk.npy", r.dk);
  write(out, "dv.npy", r.dv);
  write(out, "dsink.npy", r.dsink);
  write(out, "delta.npy", r.delta);
  write(out, "rowsum.npy", r.row_sum);
  write(out, "l1.npy", r.l1);
  for (const host_payload& p : r.payloads) {
    write(out, p.name + "8.npy", p.name + "_scale.npy", p.rowwise);
    if (!p.columnwise.shape.empty())
      write(out, p.name + "8_columnwise.npy", p.name + "_scale_columnwise.npy", p.columnwise);
  }
}

}  // namespace

void run_attention(const attention_options& options) {
  inputs in = read_inputs(options.problem);
  octavo::problem& p = in.problem;
  p.o_residual = options.o_residual;
  p.save_payloads = options.save_payloads;

  const octavo::backend_entry& entry = runnable_backend(options.engine);
  const octavo::engine& engine = find_engine(entry, options.engine);
  if (const std::string why = no_payload_reason(engine.recipe); p.save_payloads && !why.empty()) unsupported(why);
  if (const octavo::support s = engine.supports(p); !s) unsupported(std::string(s.reason.view()));
  output_folder out("--out", options.out, result_names());

  const device on(entry, options.engine);
  progress shown;
  octavo::trace_log::clear();
  attention_call call(on, engine, in, p);
  shown.step("forward");
  const double forward_ms = call.forward();
  std::optional<double> backward_ms;
  if (in.dout) {
    shown.step("backward");
    backward_ms = call.backward();
  }
  const std::vector<std::string> main_loops = octavo::trace_log::loops();
  shown.step("writing");
  write(out, call.collect());

  json_writer json;
  json.begin_object().value("backend", engine.backend).value("device", on.name());
  json.value("recipe", engine.recipe).value("delta", engine.delta).value("element_type", name_of(p.element));
  json.list("main_loops", main_loops).value("forward_ms", forward_ms);
  if (backward_ms)
    json.value("backward_ms", *backward_ms);
  else
    json.null("backward_ms");
  report_shape(json, p);
  report_options(json, p, options.engine);
  std::vector<std::string> notes = notes_on(p);
  if (const auto* kernels = on.kernels(); kernels != nullptr) {
    report_kernels(json, *kernels);
    if (kernels->empty())
      notes.emplace_back("nothing was simulated: no schedule takes this problem, and the generic loops computed it");
  }
  json.list("notes", notes).list("files", out.names()).end_object();
  out.add_text("report.json", json.text());
  out.commit();
}

}  // namespace cli
