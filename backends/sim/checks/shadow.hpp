// SPDX-License-Identifier: Apache-2.0
// What is known of memory: the last write of every four bytes and the reads since, after FastTrack (Flanagan and
// Freund, PLDI 2009). A write must come after the last write and all reads since; a read after the last write. Only
// where threads read without an order between them are there several reads to be kept.
//
// Where single bytes are accessed, the four are told apart until one write covers them all.
#pragma once

#include <octavo/backends/sim/checks/clocks.hpp>
#include <octavo/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <sys/mman.h>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim::checks {

enum class finding { none, race_with_write, race_with_read, never_written };

struct clash {
  finding what = finding::none;
  std::uint64_t other = 0;     ///< epoch of the access that this one races with
  std::uint64_t other_at = 0;  ///< its place (places.hpp)
};

class shadow {
 public:
  static constexpr std::size_t granule = 4;

  /// must_be_written: whether reading what nothing has written is a fault.
  shadow(std::size_t bytes, bool races, bool must_be_written)
      : count_(bytes / granule + 2), races_(races), must_be_written_(must_be_written) {
    void* memory = mmap(nullptr, count_ * sizeof(cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    cells_ = static_cast<cell*>(memory);
  }
  ~shadow() { munmap(cells_, count_ * sizeof(cell)); }
  shadow(const shadow&) = delete;
  shadow& operator=(const shadow&) = delete;

  /// An access to `bytes` bytes from `offset` on (which counts from an address that is a multiple of four).
  clash check(std::size_t offset, std::size_t bytes, bool writes, const actor& who, std::uint64_t at) {
    const std::size_t end = offset + bytes;
    for (std::size_t i = offset / granule; i * granule < end; ++i) {
      const std::size_t first = i * granule < offset ? offset - i * granule : 0;
      const std::size_t last = end - i * granule < granule ? end - i * granule : granule;
      const clash found =
          last - first == granule ? whole(cells_[i], writes, who, at) : part(cells_[i], first, last, writes, who, at);
      if (found.what != finding::none) return found;
    }
    return {};
  }

  /// Who wrote a byte last, and where; an epoch of zero where nothing has.
  clash last_write(std::size_t offset) const {
    const cell& all = cells_[offset / granule];
    const cell& c = (all.write & split_bit) != 0 ? split_[all.write & ~split_bit][offset % granule] : all;
    return {finding::none, c.write, c.write_at};
  }

 private:
  static constexpr std::uint64_t split_bit = std::uint64_t{1} << 63, set_bit = std::uint64_t{1} << 62;
  static constexpr std::size_t many_readers = 512, readers_of_other_blocks = 16;

  struct cell {
    std::uint64_t write = 0;  ///< epoch; or split_bit and the number of four cells
    std::uint64_t read = 0;   ///< epoch; or set_bit and the number of a set
    std::uint64_t write_at = 0, read_at = 0;
  };
  struct reader {
    std::uint64_t read, at;
  };
  struct reader_set {
    std::vector<reader> all{};
    std::size_t next = 0;  ///< where the next look begins: readers come again in the same order
  };

  clash whole(cell& c, bool writes, const actor& who, std::uint64_t at) {
    if ((c.write & split_bit) != 0) {
      const clash found = part(c, 0, granule, writes, who, at);
      if (writes && found.what == finding::none) merge(c);
      return found;
    }
    return writes ? write(c, who, at) : read(c, who, at);
  }

  clash part(cell& c, std::size_t first, std::size_t last, bool writes, const actor& who, std::uint64_t at) {
    if ((c.write & split_bit) == 0) {
      if (writes ? c.write == who.now && c.read == 0 : c.read == who.now && (c.write != 0 || !must_be_written_))
        return {};
      split(c);
    }
    std::array<cell, granule>& bytes = split_[c.write & ~split_bit];
    for (std::size_t i = first; i < last; ++i) {
      const clash found = writes ? write(bytes[i], who, at) : read(bytes[i], who, at);
      if (found.what != finding::none) return found;
    }
    return {};
  }

  static bool both_atomic(std::uint64_t x, std::uint64_t y) { return (x & y & epoch::atomic_bit) != 0; }

  clash read(cell& c, const actor& who, std::uint64_t at) {
    if (c.write == 0) {
      if (must_be_written_) return {finding::never_written, 0, 0};
    } else if (races_ && !both_atomic(c.write, who.now) && !who.comes_after(c.write)) {
      return {finding::race_with_write, c.write, c.write_at};
    }
    if (c.read == who.now || !races_) return {};
    if ((c.read & set_bit) == 0) {
      // A plain read must not be forgotten for an atomic one, which races with less.
      const bool covers = (who.now & epoch::atomic_bit) == 0 || (c.read & epoch::atomic_bit) != 0;
      if (c.read == 0 || (covers && who.comes_after(c.read))) {
        c.read = who.now;
        c.read_at = at;
        return {};
      }
      make_set(c);
    } else if ((who.now & epoch::atomic_bit) == 0) {
      for (const reader& r : sets_[c.read & ~set_bit].all)
        if ((r.read & epoch::wrote_bit) != 0 && !who.comes_after(r.read))
          return {finding::race_with_write, r.read, r.at};
    }
    add(sets_[c.read & ~set_bit], who.now, at);
    return {};
  }

  clash write(cell& c, const actor& who, std::uint64_t at) {
    if (c.write == who.now && c.read == 0) return {};
    if (races_) {
      if (c.write != 0 && !both_atomic(c.write, who.now) && !who.comes_after(c.write))
        return {finding::race_with_write, c.write, c.write_at};
      if ((c.read & set_bit) != 0) {
        for (const reader& r : sets_[c.read & ~set_bit].all)
          if (!both_atomic(r.read, who.now) && !who.comes_after(r.read))
            return {(r.read & epoch::wrote_bit) != 0 ? finding::race_with_write : finding::race_with_read, r.read,
                    r.at};
      } else if (c.read != 0 && !both_atomic(c.read, who.now) && !who.comes_after(c.read)) {
        return {finding::race_with_read, c.read, c.read_at};
      }
    }
    if ((who.now & epoch::atomic_bit) != 0 && c.write != 0 && races_) {
      // Atomic accesses need no order between them, so none stands for the others: all are kept.
      if ((c.read & set_bit) == 0) make_set(c);
      if ((c.write & epoch::atomic_bit) != 0) add(sets_[c.read & ~set_bit], c.write | epoch::wrote_bit, c.write_at);
    } else {
      forget_readers(c);
    }
    c.write = who.now;
    c.write_at = at;
    return {};
  }

  void make_set(cell& c) {
    std::size_t number = sets_.size();
    if (free_sets_.empty()) {
      sets_.emplace_back();
    } else {
      number = free_sets_.back();
      free_sets_.pop_back();
      sets_[number] = {};
    }
    if (c.read != 0) sets_[number].all.push_back({c.read, c.read_at});
    c.read = set_bit | number;
  }
  void forget_readers(cell& c) {
    if ((c.read & set_bit) != 0) free_sets_.push_back(c.read & ~set_bit);
    c.read = 0;
  }

  /// One read of each thread. Of other blocks only some are kept where there are many: they are ordered with each other
  /// by atomics alone, and one of them is enough to find a race.
  void add(reader_set& set, std::uint64_t now, std::uint64_t at) {
    const std::uint64_t who = now & epoch::who_mask;
    const std::size_t count = set.all.size();
    for (std::size_t i = 0, at_reader = set.next; i < count; ++i) {
      if (at_reader >= count) at_reader = 0;
      if (reader& r = set.all[at_reader]; (r.read & epoch::who_mask) == who) {
        r = {now, at};
        set.next = at_reader + 1;
        return;
      }
      ++at_reader;
    }
    if (count >= many_readers) {
      std::size_t others = 0;
      for (std::size_t i = count; i-- > 0;)
        if (epoch::block(set.all[i].read) != epoch::block(now) && ++others > readers_of_other_blocks)
          set.all.erase(set.all.begin() + static_cast<std::ptrdiff_t>(i));
    }
    set.all.push_back({now, at});
    set.next = 0;
  }

  void split(cell& c) {
    std::size_t number = split_.size();
    if (free_split_.empty()) {
      split_.emplace_back();
    } else {
      number = free_split_.back();
      free_split_.pop_back();
    }
    std::array<cell, granule>& bytes = split_[number];
    bytes.fill(c);
    if ((c.read & set_bit) != 0)
      for (std::size_t i = 1; i < granule; ++i) {
        const std::size_t from = c.read & ~set_bit;
        bytes[i].read = 0;
        make_set(bytes[i]);
        sets_[bytes[i].read & ~set_bit] = sets_[from];
      }
    c.read = 0;
    c.write = split_bit | number;
  }
  /// After one write of all four.
  void merge(cell& c) {
    const std::size_t number = c.write & ~split_bit;
    std::array<cell, granule>& bytes = split_[number];
    if ((bytes[0].write & epoch::atomic_bit) != 0) return;  // those keep their sets
    c = bytes[0];
    free_split_.push_back(number);
  }

  cell* cells_;
  std::size_t count_;
  bool races_, must_be_written_;
  std::deque<std::array<cell, granule>> split_{};
  std::deque<reader_set> sets_{};
  std::vector<std::size_t> free_split_{}, free_sets_{};
};

}  // namespace backends::sim::checks
OCTAVO_END_NAMESPACE
