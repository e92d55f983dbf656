// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/convert.hpp on the host.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/proxy.hpp>
#include <octavo/backends/sim/ptx/device.hpp>
#include <octavo/backends/sim/warpgroup.hpp>
#include <octavo/config.hpp>
#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/fp16.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline float multiply(float a, float b) {
  const volatile float product = a * b;
  return product;
}
inline std::uint32_t pack_bf16(float a, float b) {
  return bf16::nearest_even(a).bits | std::uint32_t{bf16::nearest_even(b).bits} << 16;
}
inline std::uint32_t pack_f16(float a, float b) {
  return fp16::nearest_even(a).bits | std::uint32_t{fp16::nearest_even(b).bits} << 16;
}
inline void unpack_f16(std::uint32_t word, float& low, float& high) {
  low = fp16::decode(static_cast<std::uint16_t>(word));
  high = fp16::decode(static_cast<std::uint16_t>(word >> 16));
}
inline float larger_or_nan(float a, float b) { return a != a || a > b ? a : b; }
inline void keep_as_is(std::uint32_t&) {}

/// The nearest float; the device's is within 2 units in the last place.
inline float exp2_approximate(float x) {
  constexpr float smallest = std::numeric_limits<float>::min();
  const float y = std::exp2(std::fabs(x) < smallest ? 0.0f : x);
  return y < smallest ? 0.0f : y;
}

namespace detail {
template <class E>
std::uint32_t byte_of(float x) {
  return x != x ? 0x7f : E::nearest_even(x).bits;  // the device's NaN is 7F in both formats
}
}  // namespace detail

template <class E>
std::uint32_t pack(float a, float b, float c, float d);
template <>
inline std::uint32_t pack<e4m3>(float a, float b, float c, float d) {
  using detail::byte_of;
  return byte_of<e4m3>(a) | byte_of<e4m3>(b) << 8 | byte_of<e4m3>(c) << 16 | byte_of<e4m3>(d) << 24;
}
template <>
inline std::uint32_t pack<e5m2>(float a, float b, float c, float d) {
  using detail::byte_of;
  return byte_of<e5m2>(a) | byte_of<e5m2>(b) << 8 | byte_of<e5m2>(c) << 16 | byte_of<e5m2>(d) << 24;
}

inline void unpack_e4m3(std::uint32_t bytes, float (&x)[4]) {
  for (int i = 0; i < 4; ++i) x[i] = e4m3::decode(static_cast<std::uint8_t>(bytes >> 8 * i));
}

inline std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
  const std::uint64_t bytes = low | static_cast<std::uint64_t>(high) << 32;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<std::uint32_t>(bytes >> 8 * (selectors >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}

/// The last lane to come stores for all: element (row l / 4, column c) of matrix i goes to place l / 4 of the row whose
/// address lane 8 i + c gives.
inline void store_transposed(void* row, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                             const sim::site where = sim::site::current()) {
  const sim::checks::unchecked here;
  sim::thread& t = sim::this_thread();
  sim::block& home = *t.home;
  const std::uint32_t offset = sim::offset_in(home, row, 16, where, "a row of store_transposed");
  if (offset % 16 != 0) sim::fault(where, "stores a row at offset " + std::to_string(offset) + ": not 16-byte aligned");
  if (const sim::product* p = sim::reader_of(home, offset, 16); p != nullptr)
    sim::fault(where, "stores to offset " + std::to_string(offset) +
                          ", which a product that nothing has waited for may still read (" + sim::text_of(p->where) +
                          ")");
  sim::check_overwrite(home, t, offset, 16, "stores to", where);
  if constexpr (sim::checks::on) sim::checks::plain_access(row, 16, sim::checks::access::write, where);
  sim::meet(sim::collective_kind::store, 0, 0, {.values = {a, b, c, d}, .row = static_cast<char*>(row)}, where);
  home.unfenced[offset / 16] = static_cast<std::uint16_t>(t.index + 1);
  t.unfenced.push_back(offset / 16);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
