// SPDX-License-Identifier: Apache-2.0
// One main kernel for gfx942, for code_objects.cmake: OCTAVO_KERNEL<machine, recipe, ...> names it. Nothing here runs.
#include <octavo/backends/gpu/launch.hpp>
#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/simt/passes.hpp>

using namespace octavo;
using namespace octavo::backends;

using kernel = simt::OCTAVO_KERNEL;

static_assert(kernel::shared_bytes <= cdna3::machine::shared_bytes, "a block takes more than 64 KB of LDS");
// What backends/hip/README.md plans: so many blocks of four waves at once on a compute unit.
static_assert(kernel::blocks_per_sm == OCTAVO_BLOCKS && kernel::threads == 256);
static_assert(OCTAVO_BLOCKS * kernel::shared_bytes <= cdna3::machine::shared_bytes,
              "shared memory does not hold the planned blocks");

template __global__ void gpu::run_blocks<kernel>(const kernel);
