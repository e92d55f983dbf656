// SPDX-License-Identifier: Apache-2.0
// Transposed payloads: channels x tokens, for units that read both factors of a product with the contracted direction
// contiguous (FP8 on Hopper has no other form). Bytes move, scales do not change.
#pragma once

#include <octavo/config.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

/// Tokens per row of a transposed payload: `tokens` rounded up, so that rows start on copies of 16 bytes.
inline constexpr std::int64_t transposed_alignment = 16;
OCTAVO_HD constexpr std::int64_t transposed_stride(std::int64_t tokens) {
  return (tokens + transposed_alignment - 1) / transposed_alignment * transposed_alignment;
}

/// to[c * transposed_stride(tokens) + i] = from[i * stride + c] for tokens x d bytes; zero beyond the last token, which
/// is a zero in every FP8 format. A plane of its own per (document, head).
OCTAVO_HD inline void transpose_payload(const std::uint8_t* from, std::int64_t stride, std::int64_t tokens, int d,
                                        std::uint8_t* to) {
  const std::int64_t row = transposed_stride(tokens);
  for (int c = 0; c < d; ++c)
    for (std::int64_t i = 0; i < row; ++i) to[c * row + i] = i < tokens ? from[i * stride + c] : std::uint8_t{0};
}

OCTAVO_END_NAMESPACE
