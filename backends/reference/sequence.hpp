// SPDX-License-Identifier: Apache-2.0
// Where things are: documents in a batch or in a packed tensor, the rows of one head in them, the keys a row may see.
#pragma once

#include <octavo/tensor/arguments.hpp>

#include <algorithm>
#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

/// One sequence of queries over one sequence of keys: an entry of the batch, or a packed document.
struct document {
  std::int64_t index;
  std::int64_t q_first, s_q;  // first row in a packed tensor (else 0), and how many
  std::int64_t kv_first, s_kv;
};

inline document document_at(const problem& p, const offsets& cu_q, const offsets& cu_kv, std::int64_t i) {
  if (!p.packed) return {i, 0, p.s_q, 0, p.s_kv};
  return {i, cu_q[i], cu_q[i + 1] - cu_q[i], cu_kv[i], cu_kv[i + 1] - cu_kv[i]};
}

/// The rows of one head in one document: finds them in tensors, statistics and scale arrays.
struct head_rows {
  bool packed;
  std::int64_t document, documents;
  std::int64_t first, rows, total;  // total: rows of the packed tensor
  std::int64_t head, heads;

  /// First element in a tensor [b, s, h, d] or [total, h, d].
  template <class Tensor>
  std::int64_t origin(const Tensor& t) const {
    return (packed ? 0 : document * t.stride_b) + first * t.stride_s + head * t.stride_h;
  }
  /// First element in statistics [b, h, s] or [h, total].
  std::int64_t statistics() const { return packed ? head * total + first : (document * heads + head) * rows; }

  /// First row of blocks in a scale array with one row of scales per `block` tokens (see octavo::basic_quantized).
  std::int64_t scale_row(std::int64_t block) const {
    if (block == 1) return statistics();
    if (!packed) return (document * heads + head) * ((rows + block - 1) / block);
    return head * (total / block + documents) + first / block + document;
  }
  /// The one scale of the head in an array [b, h] or [h, documents].
  std::int64_t scale_of_head() const { return packed ? head * documents + document : document * heads + head; }
};

inline head_rows query_rows(const problem& p, const document& doc, std::int64_t head) {
  return {p.packed, doc.index, p.b, doc.q_first, doc.s_q, p.total_q, head, p.h_q};
}
inline head_rows key_rows(const problem& p, const document& doc, std::int64_t head) {
  return {p.packed, doc.index, p.b, doc.kv_first, doc.s_kv, p.total_kv, head, p.h_kv};
}
/// What stands in a packed tensor behind its last document.
inline head_rows tail_rows(const problem& p, std::int64_t first, std::int64_t total, std::int64_t head,
                           std::int64_t heads) {
  return {true, p.b, p.b, first, total - first, total, head, heads};
}

struct key_range {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

/// The keys of each row. Row i stands at key position i, or i + s_kv - s_q with a bottom-right causal mask, counted in
/// the whole sequence of which this problem may be a part; a window counts from there, and causal means no key after
/// it.
class visible_keys {
 public:
  visible_keys(const problem& p, const document& doc) : s_kv_(doc.s_kv) {
    const std::int64_t q_total = p.shard.s_q_total ? p.shard.s_q_total : p.shard.q_begin + doc.s_q;
    const std::int64_t kv_total = p.shard.s_kv_total ? p.shard.s_kv_total : p.shard.kv_begin + doc.s_kv;
    row_0_ = p.shard.q_begin - p.shard.kv_begin;
    if (p.mask.causal == causal_mask::bottom_right) row_0_ += kv_total - q_total;
    static constexpr std::int64_t unbounded = std::int64_t{1} << 61;
    const auto reach = [](std::int64_t window) { return window < 0 ? unbounded : std::min(window, unbounded); };
    left_ = reach(p.mask.window_left);
    right_ = p.mask.causal == causal_mask::none ? reach(p.mask.window_right) : 0;
  }

  key_range of(std::int64_t i) const {
    const std::int64_t position = row_0_ + i;
    return {std::clamp(position - left_, std::int64_t{0}, s_kv_),
            std::clamp(position + right_ + 1, std::int64_t{0}, s_kv_)};
  }

 private:
  std::int64_t s_kv_, row_0_, left_, right_;
};

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
