// SPDX-License-Identifier: Apache-2.0
// Does the judge see anything? Backends with one planted fault each go through a part of the table, and each must be
// found wrong; the backend they are made from goes through the same part, and must not.
#include <octavo/backend/entry.hpp>
#include <octavo/engines.hpp>

#include <doctest/doctest.h>

#include <map>
#include <memory>

#include "conformance/faulty_passes.hpp"
#include "conformance/judge.hpp"
#include "conformance/table.hpp"

using namespace octavo_tests;

namespace {

/// The part of the table: two key tiles, masks, groups, documents, a sink, centred keys.
constexpr std::string_view part[] = {"key bias",         "113 x 203", "GQA 4/2", "bottom-right, tall", "window 32, 64",
                                     "packed, key bias", "d 96",      "sink",    "centring, given"};

/// The configs that every fault is compiled for: two images and one, a delta of each kind.
template <class Backend>
octavo::backend_entry entry_of() {
  namespace recipe = octavo::recipe;
  namespace delta = octavo::delta;
  static constexpr octavo::engine engines[] = {
      octavo::engine_of<octavo::config<Backend, recipe::mx32, delta::matched>>(),
      octavo::engine_of<octavo::config<Backend, recipe::token, delta::consistent>>()};
  static constexpr std::span<const octavo::engine> lists[] = {engines};
  return octavo::host_entry<Backend>(lists);
}

/// The rows of the part with the truth about them, which all faults share.
class trial {
 public:
  explicit trial(const octavo::backend_entry& reference) {
    for (const row& r : table())
      for (const std::string_view name : part)
        if (r.name == name) items_.push_back(std::make_unique<item>(reference, r));
  }
  std::size_t rows() const { return items_.size(); }

  /// The complaints about the backend, or the first ones only.
  judge::complaints judged(const octavo::backend_entry& backend, bool stop_at_first) {
    judge::complaints found;
    for (const octavo::engine& e : backend.engines[0])
      for (const std::unique_ptr<item>& x : items_) {
        const results got = run(backend, e, x->c, x->r.how);
        for (const std::string& complaint : judge::on(backend, e, x->c, x->r.inputs, got, x->of(e)))
          found.push_back(std::string(e.recipe) + ", " + x->r.name + ": " + complaint);
        if (stop_at_first && !found.empty()) return found;
      }
    return found;
  }

 private:
  struct item {
    item(const octavo::backend_entry& on, const row& of) : reference(on), r(of), c(of.make()) {}
    truth& of(const octavo::engine& e) {
      return known.try_emplace(std::string(e.recipe), reference, c, r.how).first->second;
    }
    const octavo::backend_entry& reference;
    const row& r;
    test_case c;
    std::map<std::string, truth> known;  // by recipe, which here stands for the config
  };
  std::vector<std::unique_ptr<item>> items_;
};

struct planted {
  const char* name;
  octavo::backend_entry (*entry)();
};
#define OCTAVO_FAULT(name) \
  planted { #name, &entry_of<octavo_tests::faults::name> }
constexpr planted all_faults[] = {
    OCTAVO_FAULT(block_scale_dropped),
    OCTAVO_FAULT(columnwise_read_as_rowwise),
    OCTAVO_FAULT(tail_rows_not_zeroed),
    OCTAVO_FAULT(key_scale_dropped),
    OCTAVO_FAULT(p_truncated),
    OCTAVO_FAULT(gradients_truncated),
    OCTAVO_FAULT(descale_forgotten),
    OCTAVO_FAULT(dq_of_a_tile_lost),
    OCTAVO_FAULT(contraction_cut),
    OCTAVO_FAULT(mask_sees_one_key_more),
    OCTAVO_FAULT(mask_sees_one_key_less),
    OCTAVO_FAULT(window_one_too_wide),
    OCTAVO_FAULT(wrong_head_group),
    OCTAVO_FAULT(scale_of_a_padded_head),
    OCTAVO_FAULT(sink_left_out),
    OCTAVO_FAULT(last_key_tile_skipped),
    OCTAVO_FAULT(p_scale_left_in_l),
    OCTAVO_FAULT(lse_in_log2),
    OCTAVO_FAULT(lse_finite_without_keys),
    OCTAVO_FAULT(lse_not_written),
    OCTAVO_FAULT(o_off_by_a_step),
    OCTAVO_FAULT(one_statistic_too_many),
    OCTAVO_FAULT(stale_delta_for_matched),
    OCTAVO_FAULT(centring_forgotten_in_backward),
    OCTAVO_FAULT(softmax_scale_missing_in_dk),
};
#undef OCTAVO_FAULT

}  // namespace

TEST_CASE("the judge finds every planted fault") {
  const octavo::backend_entry* reference = find_backend(octavo::all_backends(), "reference");
  if (!reference || !reference->compiled) {
    MESSAGE("skipped: the reference backend, which judges the others, is not compiled");
    return;
  }
  trial t(*reference);
  REQUIRE(t.rows() == std::size(part));
  for (const std::string& complaint : t.judged(entry_of<faults::correct_passes>(), false))
    FAIL_CHECK("without a fault: " << complaint);
  for (const planted& fault : all_faults) {
    const judge::complaints found = t.judged(fault.entry(), true);
    CHECK_MESSAGE(!found.empty(), std::string(fault.name));
    if (!found.empty()) MESSAGE(std::string(fault.name) << " is found by " << found.front());
  }
}
