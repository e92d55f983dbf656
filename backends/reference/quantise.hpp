// SPDX-License-Identifier: Apache-2.0
// X^, the value of X after quantisation and dequantisation, for each recipe; and payloads in the caller's memory.
//
//     scale = 2^ceil(log2(amax / max))      amax over the finite elements of the block, max of the format
//     X^    = round(X / scale) * scale      (recipe tensor: scale = amax / max in FP32)
//
// All of it on whole matrices: which elements share a scale is only the extent of a block.
#pragma once

#include <octavo/backends/reference/matrix.hpp>
#include <octavo/numeric/e8m0.hpp>
#include <octavo/scaling/recipe.hpp>

#include <utility>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

enum class policy { stale, matched, consistent };

/// A config as run-time values. bf16 and exact are the recipes without scales; exact has float64 for its formats.
struct rules {
  recipe::granularity scale_per;
  format element, gradient;  // of Q, K, V, P and of dO, dS
  policy delta;

  bool exact() const { return element.mantissa_bits == 52; }
  /// Elements that share a scale of P or dS along the contraction axis.
  std::int64_t product_block() const { return scale_per == recipe::granularity::block32 ? 32 : 128; }
};

struct block {
  std::int64_t rows, cols;
};
enum class scale_kind { power_of_two, fp32 };

/// The smallest power of two with amax / scale <= max, within the range of e8m0. A block of zeros gets 1.
inline double power_of_two_scale(double amax, double max) {
  if (amax == 0) return 1;
  int amax_exponent, max_exponent;
  const double amax_fraction = std::frexp(amax, &amax_exponent);
  const double max_fraction = std::frexp(max, &max_exponent);
  const int exponent = amax_exponent - max_exponent + (amax_fraction > max_fraction ? 1 : 0);
  return power_of_two(std::clamp(exponent, -e8m0::bias, e8m0::bias));
}

/// amax / max as FP32 has it; kept normal, so that dividing by it is harmless.
inline double fp32_scale(double amax, double max) {
  if (amax == 0) return 1;
  return std::max(static_cast<float>(amax) / static_cast<float>(max), std::numeric_limits<float>::min());
}

/// X^ and the scale of each of its blocks.
struct image {
  matrix values;
  matrix scale;
  block extent{1, 1};
};

inline image quantise_blocks(const matrix& x, block extent, const format& f,
                             scale_kind kind = scale_kind::power_of_two) {
  extent = {std::max<std::int64_t>(extent.rows, 1), std::max<std::int64_t>(extent.cols, 1)};
  const auto blocks = [](std::int64_t n, std::int64_t size) { return (n + size - 1) / size; };
  image out{matrix(x.rows(), x.cols()), matrix(blocks(x.rows(), extent.rows), blocks(x.cols(), extent.cols)), extent};
  for (std::int64_t r = 0; r < out.scale.rows(); ++r)
    for (std::int64_t b = 0; b < out.scale.cols(); ++b) {
      const std::int64_t i_end = std::min((r + 1) * extent.rows, x.rows());
      const std::int64_t c_end = std::min((b + 1) * extent.cols, x.cols());
      double amax = 0;
      for (std::int64_t i = r * extent.rows; i < i_end; ++i)
        for (std::int64_t c = b * extent.cols; c < c_end; ++c)
          if (std::isfinite(x(i, c))) amax = std::max(amax, std::fabs(x(i, c)));
      const double scale = kind == scale_kind::fp32 ? fp32_scale(amax, f.max) : power_of_two_scale(amax, f.max);
      // An FP32 scale divides in FP32, as the contract's payload = e4m3(x / descale) does on every machine. It matters:
      // .75 amax / (amax / 448) is a tie, and which way it falls hangs on the last bit of the quotient. By a power of
      // two the quotient is exact either way.
      const auto quotient = [&](double element) {
        return kind == scale_kind::fp32 ? static_cast<double>(static_cast<float>(element) / static_cast<float>(scale))
                                        : element / scale;
      };
      out.scale(r, b) = scale;
      for (std::int64_t i = r * extent.rows; i < i_end; ++i)
        for (std::int64_t c = b * extent.cols; c < c_end; ++c)
          out.values(i, c) = round_to(quotient(x(i, c)), f) * scale;
    }
  return out;
}

inline matrix round_elements(const matrix& x, const format& f) {
  matrix out(x.rows(), x.cols());
  for (std::int64_t i = 0; i < x.rows(); ++i)
    for (std::int64_t c = 0; c < x.cols(); ++c) out(i, c) = round_to(x(i, c), f);
  return out;
}

/// Q^, K^, V^ or dO^: the image for products that contract d, and the one for those that contract tokens (only with
/// mx32 are they two). With recipe token, products that contract tokens take the token's scale into their other factor
/// before that is quantised: fold(i); 1 with the other recipes.
struct operand {
  image by_row, by_column;
  bool two_images = false;
  bool folds = false;

  const matrix& rowwise() const { return by_row.values; }
  const matrix& columnwise() const { return two_images ? by_column.values : by_row.values; }
  double fold(std::int64_t token) const { return folds ? by_row.scale(token, 0) : 1; }
};

/// The blocks of a recipe, for an operand of the given extents.
inline block rowwise_block(const rules& r, std::int64_t rows, std::int64_t cols) {
  switch (r.scale_per) {
    case recipe::granularity::block32:
      return {1, 32};
    case recipe::granularity::token:
      return {1, cols};
    case recipe::granularity::tile128:
      return {128, cols};
    default:
      return {rows, cols};
  }
}
inline constexpr block columnwise_block{32, 1};  // mx32

inline operand quantise(const matrix& x, const rules& r, const format& f) {
  operand out;
  if (r.scale_per == recipe::granularity::none) {
    out.by_row.values = round_elements(x, f);
    return out;
  }
  const bool per_tensor = r.scale_per == recipe::granularity::tensor;
  out.by_row = quantise_blocks(x, rowwise_block(r, x.rows(), x.cols()), f,
                               per_tensor ? scale_kind::fp32 : scale_kind::power_of_two);
  out.two_images = r.scale_per == recipe::granularity::block32;
  if (out.two_images) out.by_column = quantise_blocks(x, columnwise_block, f);
  out.folds = r.scale_per == recipe::granularity::token;
  return out;
}

/// P or dS for a product that contracts queries (one scale per key and block of queries) or keys (per query and block
/// of keys). `other` is the product's other operand, whose token scales are folded in.
enum class contract { queries, keys };
inline matrix quantise_product(const matrix& x, contract axis, const operand& other, std::int64_t first_token,
                               const rules& r, const format& f) {
  if (r.scale_per == recipe::granularity::none) return round_elements(x, f);
  const auto fold = [&](std::int64_t i, std::int64_t j) {
    return other.fold(first_token + (axis == contract::queries ? i : j));
  };
  matrix folded(x.rows(), x.cols());
  for (std::int64_t i = 0; i < x.rows(); ++i)
    for (std::int64_t j = 0; j < x.cols(); ++j) folded(i, j) = x(i, j) == 0 ? 0 : x(i, j) * fold(i, j);
  const std::int64_t n = r.product_block();
  matrix out = quantise_blocks(folded, axis == contract::queries ? block{n, 1} : block{1, n}, f).values;
  // Unfolded again, so that every recipe multiplies by X^. The fold is a power of two: no mantissa changes.
  for (std::int64_t i = 0; i < x.rows(); ++i)
    for (std::int64_t j = 0; j < x.cols(); ++j)
      if (out(i, j) != 0) out(i, j) /= fold(i, j);
  return out;
}

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
