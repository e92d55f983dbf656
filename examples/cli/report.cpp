// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

namespace cli {

const char* name_of(octavo::causal_mask mask) {
  switch (mask) {
    case octavo::causal_mask::top_left:
      return "top-left";
    case octavo::causal_mask::bottom_right:
      return "bottom-right";
    default:
      return "none";
  }
}

const char* name_of(octavo::key_centring centring) {
  switch (centring) {
    case octavo::key_centring::batch:
      return "batch";
    case octavo::key_centring::given:
      return "given";
    default:
      return "off";
  }
}

void report_shape(json_writer& json, const octavo::problem& p) {
  json.begin_object("shape").value(p.packed ? "documents" : "b", p.b).value("h_q", p.h_q).value("h_kv", p.h_kv);
  if (p.packed)
    json.value("total_q", p.total_q)
        .value("total_kv", p.total_kv)
        .value("longest_q", p.s_q)
        .value("longest_kv", p.s_kv);
  else
    json.value("s_q", p.s_q).value("s_kv", p.s_kv);
  json.value("d_qk", p.d_qk).value("d_v", p.d_v).end_object();
}

void report_options(json_writer& json, const octavo::problem& p, const engine_options& engine) {
  json.begin_object("options").value("causal", name_of(p.mask.causal));
  json.value("window_left", p.mask.window_left).value("window_right", p.mask.window_right);
  json.value("scale", static_cast<double>(p.scale())).value("softcap", static_cast<double>(p.softcap));
  json.value("sink", p.sink).value("packed", p.packed).value("key_centring", name_of(p.key_centring));
  json.value("e5m2_gradients", engine.e5m2_gradients).value("o_residual", p.o_residual);
  json.value("deterministic", p.deterministic);
  if (!engine.accumulator.empty()) json.value("accumulator", engine.accumulator);
  json.end_object();
}

void report_kernels(json_writer& json, const std::vector<octavo::kernel_counts>& kernels) {
  json.begin_array("kernels");
  for (const octavo::kernel_counts& k : kernels) {
    json.begin_object().value("name", k.name).value("launches", k.launches).value("blocks", k.blocks);
    json.begin_object("matrix_instructions");
    for (const auto& [name, count] : k.matrix_instructions) json.value(name, count);
    json.end_object();
    json.value("barriers", k.barriers).value("phases_of_shared_barriers", k.phases);
    json.value("shared_bytes", k.shared_bytes).value("copied_bytes", k.copied_bytes);
    json.value("races_checked", k.races_checked).end_object();
  }
  json.end_array();
}

std::vector<std::string> notes_on(const octavo::problem& p) {
  std::vector<std::string> notes;
  if (p.key_centring == octavo::key_centring::batch && p.mask.causal != octavo::causal_mask::none)
    notes.emplace_back(
        "key centring by batch subtracts a mean over all keys: under the causal mask, future keys reach the rounding "
        "of "
        "earlier rows; a --key-centring file with an average of earlier steps avoids that");
  return notes;
}

}  // namespace cli
