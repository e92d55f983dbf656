// SPDX-License-Identifier: Apache-2.0
// octavo audit: every recipe and delta policy on the user's own tensors, against exact attention in float64.
#include <octavo/backend/trace.hpp>

#include <cstdio>

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

/// Runs one combination, or says why not.
void measure(audit_row& row, const device& on, const audit_options& options, const inputs& in, const results& truth) {
  octavo::problem p = in.problem;
  p.o_residual = row.variant == audit_variant::o_residual;
  if (row.variant == audit_variant::key_centring) p.key_centring = octavo::key_centring::batch;
  const engine_options asked{options.engine.backend, row.recipe, row.delta, options.engine.e5m2_gradients};
  const octavo::engine* engine = on.entry().find(asked.recipe, asked.delta, asked.e5m2_gradients);
  if (engine == nullptr) {
    row.reason = no_engine_reason(on.entry(), asked);
    return;
  }
  if (const octavo::support s = engine->supports(p); !s) {
    row.reason = std::string(s.reason.view());
    return;
  }
  octavo::trace_log::clear();
  attention_call call(on, *engine, in, p);
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
  const octavo::backend_entry& entry = runnable_backend(options.engine.backend);
  std::vector<audit_row> rows = rows_for(options, in.problem);
  output_folder out("--out", options.out);

  const device on(entry);
  {
    progress shown;
    shown.step("exact attention in float64");
    const results truth = truth_of(in);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      shown.step(std::to_string(i + 1) + "/" + std::to_string(rows.size()) + " " + rows[i].recipe + " " +
                 rows[i].delta);
      measure(rows[i], on, options, in, truth);
    }
  }
  std::fputs(table_of(rows).c_str(), stdout);
  out.add_text("report.json", report_of(rows, on, in.problem, options));
  draw_audit(out, rows);
  out.commit();
}

}  // namespace cli
