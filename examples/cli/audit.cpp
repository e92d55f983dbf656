// SPDX-License-Identifier: Apache-2.0
// octavo audit: every recipe and delta policy on the user's own tensors, against exact attention in float64.
#include <octavo/backend/trace.hpp>

#include <algorithm>
#include <cstdio>

#include "audit_picture.hpp"
#include "audit_table.hpp"
#include "call.hpp"
#include "commands.hpp"
#include "compare.hpp"
#include "output_folder.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace cli {
namespace {

/// The combinations in the order of the table: recipes outside, policies inside, then the variants that are worth a
/// row.
std::vector<audit_row> rows_for(const audit_options& options, const octavo::problem& p) {
  std::vector<audit_row> rows;
  const auto add = [&](const char* recipe, const char* delta, audit_variant variant) {
    const bool wanted = (options.engine.recipe.empty() || options.engine.recipe == recipe) &&
                        (options.engine.delta.empty() || options.engine.delta == delta);
    if (wanted) rows.push_back({recipe, delta, variant});
  };
  for (const char* recipe : {"mx32", "token", "tile", "tensor", "bf16"})
    for (const char* delta : {"stale", "matched", "consistent"}) add(recipe, delta, audit_variant::plain);
  if (options.engine.recipe == "exact")
    for (const char* delta : {"stale", "matched", "consistent"}) add("exact", delta, audit_variant::plain);
  if (p.element != octavo::dtype::f32) add("token", "consistent", audit_variant::o_residual);
  if (p.key_centring == octavo::key_centring::off && p.softcap == 0)
    for (const char* delta : {"stale", "matched", "consistent"}) add("token", delta, audit_variant::key_centring);
  return rows;
}

/// Exact attention in float64 on the elements of T. Centring changes nothing in it.
results truth_of(const inputs& in) {
  octavo::problem p = in.problem;
  p.key_centring = octavo::key_centring::off;
  const octavo::backend_entry& reference = runnable_backend("reference");
  const octavo::engine& exact = find_engine(reference, {"reference", "exact", "matched", false});
  if (const octavo::support s = exact.supports(p); !s) unsupported(std::string(s.reason.view()));
  const device on(reference);
  attention_call call(on, exact, in, p);
  call.forward();
  call.backward();
  return call.collect();
}

/// The problem of a row: that of the inputs, with what the variant adds.
octavo::problem problem_of(const audit_row& row, const inputs& in) {
  octavo::problem p = in.problem;
  p.o_residual = row.variant == audit_variant::o_residual;
  if (row.variant == audit_variant::key_centring) p.key_centring = octavo::key_centring::batch;
  return p;
}

/// The engine of a row, or nullptr and the reason in the row.
const octavo::engine* find_engine(audit_row& row, const octavo::backend_entry& entry, const audit_options& options,
                                  const inputs& in) {
  const engine_options asked{options.engine.backend, row.recipe, row.delta, options.engine.e5m2_gradients};
  const octavo::engine* engine = entry.find(asked.recipe, asked.delta, asked.e5m2_gradients);
  if (engine == nullptr) {
    row.reason = no_engine_reason(entry, asked);
    return nullptr;
  }
  const octavo::support s = engine->supports(problem_of(row, in));
  if (!s) row.reason = std::string(s.reason.view());
  return s ? engine : nullptr;
}

void measure(audit_row& row, const device& on, const octavo::engine& engine, const inputs& in, const results& truth) {
  octavo::trace_log::clear();
  attention_call call(on, engine, in, problem_of(row, in));
  row.forward_ms = call.forward();
  row.backward_ms = call.backward();
  row.main_loops = octavo::trace_log::loops();
  const results r = call.collect();
  row.o = relative_l2(r.o->values, truth.o->values);
  row.dq = relative_l2(r.dq->values, truth.dq->values);
  row.dk = relative_l2(r.dk->values, truth.dk->values);
  row.dv = relative_l2(r.dv->values, truth.dv->values);
  row.lse = max_difference(r.lse->values, truth.lse->values);
  row.row_sum = row_sum_ratio(r.row_sum->values, r.l1->values);
}

/// What the figures are of, for table and picture: "bf16, causal mask top-left, keys as given".
std::string description_of(const octavo::problem& p) {
  std::string out = name_of(p.element);
  if (p.mask.causal != octavo::causal_mask::none) out += std::string(", causal mask ") + name_of(p.mask.causal);
  if (p.mask.window_left >= 0 || p.mask.window_right >= 0)
    out += ", window " + std::to_string(p.mask.window_left) + "," + std::to_string(p.mask.window_right);
  if (out == name_of(p.element)) out += ", no mask";
  if (p.key_centring == octavo::key_centring::off) return out + ", keys not centred";
  return out + ", keys centred by " + (p.key_centring == octavo::key_centring::batch ? "their mean" : "a file");
}

std::string report_of(const std::vector<audit_row>& rows, const device& on, const octavo::problem& p,
                      const audit_options& options) {
  json_writer json;
  json.begin_object().value("backend", on.entry().name).value("device", on.name());
  json.value("element_type", name_of(p.element));
  json.value("truth", "reference, recipe exact (float64), on the inputs as rounded to the element type");
  report_shape(json, p);
  report_options(json, p, options.engine);
  json.begin_array("rows");
  for (const audit_row& row : rows) {
    json.begin_object().value("recipe", row.recipe).value("delta", row.delta).value("variant", name_of(row.variant));
    json.value("supported", row.measured());
    if (row.measured()) {
      json.value("o", row.o).value("dq", row.dq).value("dk", row.dk).value("dv", row.dv).value("lse", row.lse);
      json.value("row_sum_over_l1", row.row_sum).list("main_loops", row.main_loops);
      json.value("forward_ms", row.forward_ms).value("backward_ms", row.backward_ms);
    } else {
      json.value("reason", row.reason);
    }
    json.end_object();
  }
  json.end_array().list("notes", notes_on(p)).end_object();
  return json.text();
}

}  // namespace

void run_audit(const audit_options& options) {
  const inputs in = read_inputs(options.problem);
  const octavo::backend_entry& entry = runnable_backend(options.engine);
  std::vector<audit_row> rows = rows_for(options, in.problem);
  std::vector<const octavo::engine*> engines;
  for (audit_row& row : rows) engines.push_back(find_engine(row, entry, options, in));
  const std::string heading = description_of(in.problem);
  if (std::all_of(engines.begin(), engines.end(), [](const auto* engine) { return engine == nullptr; })) {
    std::fputs(table_of(rows, heading).c_str(), stdout);
    unsupported("nothing to measure: " + rows.front().reason +
                (rows.size() > 1 ? " (standard output has the reason of every row)" : ""));
  }
  output_folder out("--out", options.out, {"report.json", "audit.png"});

  const device on(entry, options.engine);
  {
    progress shown;
    shown.step("exact attention in float64");
    const results truth = truth_of(in);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      shown.step(std::to_string(i + 1) + "/" + std::to_string(rows.size()) + " " + rows[i].recipe + " " +
                 rows[i].delta);
      if (engines[i] != nullptr) measure(rows[i], on, *engines[i], in, truth);
    }
  }
  std::fputs(table_of(rows, heading).c_str(), stdout);
  out.add_text("report.json", report_of(rows, on, in.problem, options));
  const std::string warning = draw_audit(out.add("audit.png"), out.final_path("audit.png"), rows, heading);
  if (!warning.empty()) {
    std::fprintf(stderr, "octavo: warning: %s\n", warning.c_str());
    out.drop("audit.png");
  }
  out.commit();
}

}  // namespace cli
