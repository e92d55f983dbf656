// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/tensor_copy.hpp on the host. A map is the layout itself, checked as the driver does.
#pragma once

#include <octavo/backends/cuda/ptx/tensor_copy.hpp>  // tensor_layout
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/ptx/copy.hpp>
#include <octavo/backends/sim/tensor_box.hpp>
#include <octavo/config.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

struct tensor_map {
  sim::tensor_box box{};
  bool encoded = false;
};

inline bool encode(tensor_map& map, const tensor_layout& layout) {
  map.encoded = false;
  if (layout.rank < 2 || layout.rank > most_tensor_rank) return false;
  map.box = {static_cast<const char*>(layout.data), layout.rank, {}, {}, {}, row_bytes(layout.pattern)};
  for (int i = 0; i < layout.rank; ++i) {
    map.box.extents[i] = layout.extents[i];
    map.box.strides[i] = i == 0 ? 1 : layout.strides[i - 1];
    map.box.box[i] = layout.box[i];
  }
  map.encoded = sim::is_box(map.box);
  return map.encoded;
}

namespace detail {
inline void load_box(void* to, const tensor_map& map, std::initializer_list<int> first, const shared_barrier& arrived,
                     const sim::site& where) {
  const sim::checks::unchecked here;
  sim::maybe_yield();
  if (!map.encoded) sim::fault(where, "copies by a tensor_map that is not encoded");
  sim::tensor_box box = map.box;
  if (static_cast<int>(first.size()) != box.rank)
    sim::fault(where, "copies from " + std::to_string(first.size()) + " coordinates of a tensor of rank " +
                          std::to_string(box.rank));
  int i = 0;
  for (const int x : first) box.first[i++] = x;
  const std::uint32_t offset = sim::offset_in(*sim::this_thread().home, to, 0, where, "a copy's destination");
  const auto alignment = static_cast<std::uint32_t>(box.pattern == 16 ? 128 : 8 * box.pattern);
  if (offset % alignment != 0)
    sim::fault(where,
               "copies a box to offset " + std::to_string(offset) + ": not a multiple of " + std::to_string(alignment));
  sim::bulk_copy& copy = begin_copy(to, sim::bytes_of(box), arrived, where);
  copy.gather = [box](char* at) { sim::gather(box, at); };
  if constexpr (sim::checks::on)
    sim::for_rows(box, [&](int row, const char* from, int valid) {
      const auto bytes = static_cast<std::size_t>(box.box[0]);
      copy.number = sim::checks::issue_copy(copy.barrier, {static_cast<char*>(to) + row * box.box[0], bytes},
                                            {from, static_cast<std::size_t>(valid)}, where);
    });
}
}  // namespace detail

inline void tensor_load(void* to, const tensor_map& map, int x, int y, shared_barrier& arrived,
                        const sim::site where = sim::site::current()) {
  detail::load_box(to, map, {x, y}, arrived, where);
}
inline void tensor_load(void* to, const tensor_map& map, int x, int y, int z, shared_barrier& arrived,
                        const sim::site where = sim::site::current()) {
  detail::load_box(to, map, {x, y, z}, arrived, where);
}
inline void tensor_load(void* to, const tensor_map& map, int x, int y, int z, int w, shared_barrier& arrived,
                        const sim::site where = sim::site::current()) {
  detail::load_box(to, map, {x, y, z, w}, arrived, where);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
