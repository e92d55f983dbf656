// SPDX-License-Identifier: Apache-2.0
// The FP8 payloads that a run hands out with --save-payloads, and their scales (shapes: octavo::basic_quantized).
#pragma once

#include <octavo/tensor/arguments.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "device.hpp"
#include "support/npy.hpp"

namespace cli {

/// One image of a tensor: bytes as they are, scales as float32.
struct host_image {
  npy::extents shape, scale_shape;
  std::vector<std::uint8_t> bytes;
  std::vector<float> scales;
};

struct host_payload {
  std::string name;                ///< q, k, v, do
  host_image rowwise, columnwise;  ///< columnwise: mx32 only, else without bytes and scales
};

/// Why the recipe has no payloads to save; empty if it has.
std::string no_payload_reason(std::string_view recipe);

class device_payload {
 public:
  device_payload(const device& on, const octavo::engine& engine, const octavo::problem& p, std::string name,
                 bool queries, std::int64_t d);
  octavo::quantized view() const;
  host_payload fetch() const;

 private:
  struct image {
    npy::extents shape, scale_shape;
    buffer bytes, scales;
  };
  image allocate(npy::extents shape, npy::extents scale_shape) const;
  host_image fetch(const image& from) const;
  octavo::tensor tensor_of(const image& from) const;

  const device* on_;
  std::string name_;
  octavo::dtype element_;
  bool float_scales_;  ///< recipe tensor; else e8m0
  bool two_images_;    ///< recipe mx32
  image rowwise_, columnwise_;
};

}  // namespace cli
