// SPDX-License-Identifier: Apache-2.0
// AMD's lane machines on their models. tests/unit/hip holds their layouts and sums against the vendor's words.
#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/hip/cdna4/machine.hpp>

#include <doctest/doctest.h>

#include "unit/simt/machine_checks.hpp"

using namespace simt_test;

TEST_CASE_TEMPLATE("simt: the matrix instructions of CDNA have their elements where their atoms say", M, cdna3::machine,
                   cdna4::machine) {
  for (const auto how : {sim::accumulation::ideal, sim::accumulation::model}) {
    check_products<M, e4m3, e4m3>(how);
    check_products<M, e5m2, e4m3>(how);
    check_products<M, e4m3, e5m2>(how);
  }
  check_rows_and_columns<M>();
}

TEST_CASE_TEMPLATE("simt: accumulators of CDNA, rounded where they are, meet a column image's tokens", M,
                   cdna3::machine, cdna4::machine) {
  check_chain<M>();
}

TEST_CASE("simt: the quantise kernel makes what the quantiser makes (CDNA's images)") {
  check_quantise<cdna3::machine, recipe::tile, e4m3, 64>(dtype::bf16, 64, false, 0);
  check_quantise<cdna3::machine, recipe::token, e4m3, 128>(dtype::f16, 96, true, 2);
  check_quantise<cdna3::machine, recipe::token, e5m2, 64>(dtype::f32, 32, false, 5);
  check_quantise<cdna4::machine, recipe::tile, e4m3, 128>(dtype::f32, 96, true, 1);
}
