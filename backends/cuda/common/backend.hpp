// SPDX-License-Identifier: Apache-2.0
// What the CUDA backends share: the generic loops, and questions to the current device.
#pragma once

#include <octavo/backends/gpu/backend.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// Self: the backend, which inherits this and has a name(). 132 multiprocessors are an H100's or H200's (SXM).
template <class Self, int multiprocessors = 132>
struct block_backend : gpu::block_backend<Self, multiprocessors> {
  static text device() {
    cudaDeviceProp properties;
    return current(properties) ? text(properties.name) : text("no device");
  }

 protected:
  /// Empty where the current device is one that `fits` takes, a function of (major, minor); `wanted` says which those are.
  template <class Fits>
  static text unavailable_unless(Fits fits, const char* wanted) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return "no device: the CUDA driver finds no GPU";
    cudaDeviceProp properties;
    if (!current(properties)) return "no device: the CUDA runtime does not answer";
    if (fits(properties.major, properties.minor)) return {};
    return text("the GPU is of compute capability ")
           << properties.major << "." << properties.minor << ", not " << wanted;
  }

  /// Whether the current device is one that `fits` takes. Cheap enough for every launch.
  template <class Fits>
  static bool is(Fits fits) {
    int device = 0, major = 0, minor = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
           fits(major, minor);
  }

 private:
  static bool current(cudaDeviceProp& properties) {
    int device = 0;
    return cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&properties, device) == cudaSuccess;
  }
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
