// SPDX-License-Identifier: Apache-2.0
// AMD's lane machines on their models. tests/unit/hip holds their layouts and sums against the vendor's words.
#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/hip/cdna4/machine.hpp>

#include <doctest/doctest.h>

#include "unit/simt/block_scale_checks.hpp"

using namespace simt_test;

namespace {

/// Machines over the atoms that no kernel uses.
struct cdna3_of_16 : cdna3::machine {
  template <class L, class R>
  using atom = cdna3::mfma_16<L, R>;
};
struct cdna4_of_16 : cdna4::machine {
  template <class L, class R>
  using atom = cdna4::scaled_mfma_16<L, R>;
};

}  // namespace

TEST_CASE_TEMPLATE("simt: the matrix instructions of CDNA have their elements where their atoms say", M, cdna3::machine,
                   cdna4::machine, cdna3_of_16, cdna4_of_16) {
  for (const auto how : {sim::accumulation::ideal, sim::accumulation::model}) {
    check_products<M, e4m3, e4m3>(how);
    check_products<M, e5m2, e4m3>(how);
    check_products<M, e4m3, e5m2>(how);
  }
  check_rows_and_columns<M>();
}

TEST_CASE_TEMPLATE("simt: accumulators of CDNA, rounded where they are, meet a column image's tokens", M,
                   cdna3::machine, cdna4::machine, cdna3_of_16, cdna4_of_16) {
  check_chain<M>();
}

TEST_CASE("simt: the quantise kernel makes what the quantiser makes (CDNA's images)") {
  check_quantise<cdna3::machine, recipe::tile, e4m3, 64>(dtype::bf16, 64, false, 0);
  check_quantise<cdna3::machine, recipe::token, e4m3, 128>(dtype::f16, 96, true, 2);
  check_quantise<cdna3::machine, recipe::token, e5m2, 64>(dtype::f32, 32, false, 5);
  check_quantise<cdna4::machine, recipe::tile, e4m3, 128>(dtype::f32, 96, true, 1);
  check_quantise<cdna3_of_16, recipe::token, e4m3, 64>(dtype::bf16, 64, false, 3);
  check_quantise<cdna4_of_16, recipe::tile, e4m3, 128>(dtype::bf16, 128, false, 4);
}

TEST_CASE("simt: the scales in CDNA4's operand blocks reach what they belong to") {
  check_block_scales<cdna4::machine>();
  check_scaled_chain<cdna4::machine, e4m3>();
  check_scaled_chain<cdna4::machine, e5m2>();
}

TEST_CASE("simt: the quantise kernel makes both payloads of mx32 (CDNA4's images)") {
  check_quantise_blocks<cdna4::machine, 64>(dtype::bf16, 32, true, 0);
  check_quantise_blocks<cdna4::machine, 128>(dtype::f32, 96, false, 1);
  check_quantise_blocks<cdna4::machine, 256>(dtype::f16, 256, true, 2);
}
