// SPDX-License-Identifier: Apache-2.0
// The one macro that code under include/ needs: functions that run on the host and, under a GPU compiler, on the
// device.
#pragma once

#include <octavo/version.hpp>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define OCTAVO_HD __host__ __device__
#else
#define OCTAVO_HD
#endif
