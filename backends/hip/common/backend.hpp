// SPDX-License-Identifier: Apache-2.0
// What the HIP backends share: the generic loops, and questions to the current device.
#pragma once

#include <octavo/backends/gpu/backend.hpp>

#include <string_view>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hip_common {

/// Self: the backend, which inherits this and has a name(). Units: its device's compute units.
template <class Self, int Units>
struct block_backend : gpu::block_backend<Self, Units> {
  static text device() {
    hipDeviceProp_t properties;
    return current(properties) ? text(properties.name) : text("no device");
  }

 protected:
  /// Empty where the current device is of this architecture ("gfx942").
  static text unavailable_unless(std::string_view architecture) {
    int count = 0;
    if (hipGetDeviceCount(&count) != hipSuccess || count == 0) return "no device: the HIP runtime finds no GPU";
    hipDeviceProp_t properties;
    if (!current(properties)) return "no device: the HIP runtime does not answer";
    // The name goes on with features: gfx942:sramecc+:xnack-
    const std::string_view name = properties.gcnArchName;
    if (name.substr(0, name.find(':')) == architecture) return {};
    return text("the GPU is a ") << properties.gcnArchName << ", not a " << architecture;
  }

 private:
  static bool current(hipDeviceProp_t& properties) {
    int device = 0;
    return hipGetDevice(&device) == hipSuccess && hipGetDeviceProperties(&properties, device) == hipSuccess;
  }
};

}  // namespace backends::hip_common
OCTAVO_END_NAMESPACE
