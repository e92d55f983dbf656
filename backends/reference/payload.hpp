// SPDX-License-Identifier: Apache-2.0
// FP8 payloads and scales in the caller's memory, in the layouts of octavo::basic_quantized: X^ = payload * scale.
#pragma once

#include <octavo/backends/reference/quantise.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

/// First scale of a head's image with the given blocks.
inline std::int64_t first_scale(const rules& r, const head_rows& at, block extent, std::int64_t scales_per_row) {
  if (r.scale_per == recipe::granularity::tensor) return at.scale_of_head();
  return at.scale_row(extent.rows) * scales_per_row;
}

inline void save_image(const octavo::tensor& payload, void* scales, const image& x, const rules& r,
                       const head_rows& at) {
  if (!payload) return;
  matrix codes(x.values.rows(), x.values.cols());
  for (std::int64_t i = 0; i < codes.rows(); ++i)
    for (std::int64_t c = 0; c < codes.cols(); ++c)
      codes(i, c) = x.values(i, c) / x.scale(i / x.extent.rows, c / x.extent.cols);  // exact: it was a product
  store(payload, at, codes);
  if (!scales) return;
  const std::int64_t first = first_scale(r, at, x.extent, x.scale.cols());
  for (std::int64_t b = 0; b < x.scale.rows(); ++b)
    for (std::int64_t c = 0; c < x.scale.cols(); ++c) {
      const std::int64_t index = first + b * x.scale.cols() + c;
      if (r.scale_per == recipe::granularity::tensor)
        static_cast<float*>(scales)[index] = static_cast<float>(x.scale(b, c));
      else
        static_cast<e8m0*>(scales)[index] = e8m0::from_exponent(std::ilogb(x.scale(b, c)));
    }
}

inline void save(const quantized& out, const operand& x, const rules& r, const head_rows& at) {
  if (at.rows == 0) return;
  save_image(out.rowwise, out.rowwise_scale, x.by_row, r, at);
  if (x.two_images) save_image(out.columnwise, out.columnwise_scale, x.by_column, r, at);
}

inline image load_image(const const_tensor& payload, const void* scales, block extent, const rules& r,
                        const head_rows& at, std::int64_t d) {
  image x{load(payload, at, d), {}, extent};
  if (at.rows == 0) return x;
  x.scale = matrix((at.rows + extent.rows - 1) / extent.rows, (d + extent.cols - 1) / extent.cols);
  const std::int64_t first = first_scale(r, at, extent, x.scale.cols());
  for (std::int64_t b = 0; b < x.scale.rows(); ++b)
    for (std::int64_t c = 0; c < x.scale.cols(); ++c) {
      const std::int64_t index = first + b * x.scale.cols() + c;
      x.scale(b, c) = r.scale_per == recipe::granularity::tensor
                          ? static_cast<const float*>(scales)[index]
                          : static_cast<float>(static_cast<const e8m0*>(scales)[index]);
    }
  for (std::int64_t i = 0; i < at.rows; ++i)
    for (std::int64_t c = 0; c < d; ++c) x.values(i, c) *= x.scale(i / extent.rows, c / extent.cols);
  return x;
}

inline operand load_payload(const const_quantized& in, const rules& r, const head_rows& at, std::int64_t d) {
  operand x;
  x.by_row = load_image(in.rowwise, in.rowwise_scale, rowwise_block(r, at.rows, d), r, at, d);
  x.two_images = r.scale_per == recipe::granularity::block32;
  if (x.two_images) x.by_column = load_image(in.columnwise, in.columnwise_scale, columnwise_block, r, at, d);
  x.folds = r.scale_per == recipe::granularity::token;
  return x;
}

/// Whether a payload that came in has all that its recipe reads.
inline status check_payload(const char* name, const const_quantized& in, const rules& r) {
  if (!in.rowwise_scale) return {status_code::invalid_argument, text(name) << " has no rowwise scales"};
  if (r.scale_per == recipe::granularity::block32 && !(in.columnwise && in.columnwise_scale))
    return {status_code::invalid_argument, text(name) << " needs its columnwise image and scales with recipe mx32"};
  return {};
}

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
