// SPDX-License-Identifier: Apache-2.0
#include "payload.hpp"

#include <octavo/numeric/e8m0.hpp>

namespace cli {
namespace {

std::int64_t product(const npy::extents& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

/// One scale per `block` tokens of a head. Packed documents take the rows that basic_quantized describes.
npy::extents scales_along_tokens(const octavo::problem& p, std::int64_t rows, std::int64_t h, std::int64_t block) {
  if (p.packed) return {h, block == 1 ? rows : rows / block + p.b};
  return {p.b, h, (rows + block - 1) / block};
}

}  // namespace

std::string no_payload_reason(std::string_view recipe) {
  if (recipe != "bf16" && recipe != "exact") return {};
  return "recipe " + std::string(recipe) + " makes no FP8 payloads; leave --save-payloads out";
}

device_payload::device_payload(const device& on, const octavo::engine& engine, const octavo::problem& p,
                               std::string name, bool queries, std::int64_t d)
    : on_(&on),
      name_(std::move(name)),
      element_(name_ == "do" && engine.e5m2_gradients ? octavo::dtype::e5m2 : octavo::dtype::e4m3),
      float_scales_(engine.recipe == "tensor"),
      two_images_(engine.recipe == "mx32") {
  const std::int64_t h = queries ? p.h_q : p.h_kv;
  const std::int64_t rows = p.packed ? (queries ? p.total_q : p.total_kv) : (queries ? p.s_q : p.s_kv);
  const npy::extents shape = p.packed ? npy::extents{rows, h, d} : npy::extents{p.b, rows, h, d};
  if (two_images_) {
    npy::extents along_channels = scales_along_tokens(p, rows, h, 1),
                 along_tokens = scales_along_tokens(p, rows, h, 32);
    along_channels.push_back(d / 32);
    along_tokens.push_back(d);
    rowwise_ = allocate(shape, along_channels);
    columnwise_ = allocate(shape, along_tokens);
  } else if (float_scales_) {
    rowwise_ = allocate(shape, p.packed ? npy::extents{h, p.b} : npy::extents{p.b, h});
  } else {
    rowwise_ = allocate(shape, scales_along_tokens(p, rows, h, engine.recipe == "token" ? 1 : 128));
  }
}

device_payload::image device_payload::allocate(npy::extents shape, npy::extents scale_shape) const {
  image out;
  const auto elements = static_cast<std::size_t>(product(shape)),
             scales = static_cast<std::size_t>(product(scale_shape));
  // Rows past the last document and the gaps between documents are nobody's: zero, and a scale of one.
  const std::vector<std::uint8_t> zeros(elements, 0);
  const std::vector<std::uint8_t> powers(scales, octavo::e8m0::from_exponent(0).bits);
  const std::vector<float> ones(float_scales_ ? scales : 0, 1.0f);
  out.bytes = on_->upload(zeros.data(), elements);
  out.scales = float_scales_ ? on_->upload(ones.data(), scales * sizeof(float)) : on_->upload(powers.data(), scales);
  out.shape = std::move(shape);
  out.scale_shape = std::move(scale_shape);
  return out;
}

octavo::tensor device_payload::tensor_of(const image& from) const {
  const std::size_t rank = from.shape.size();  // [b, s, h, d] or [total, h, d]
  return octavo::contiguous(from.bytes.data(), element_, from.shape[rank - 3], from.shape[rank - 2],
                            from.shape[rank - 1]);
}

octavo::quantized device_payload::view() const {
  octavo::quantized out;
  out.rowwise = tensor_of(rowwise_);
  out.rowwise_scale = rowwise_.scales.data();
  if (two_images_) {
    out.columnwise = tensor_of(columnwise_);
    out.columnwise_scale = columnwise_.scales.data();
  }
  return out;
}

host_image device_payload::fetch(const image& from) const {
  host_image out{from.shape, from.scale_shape, std::vector<std::uint8_t>(from.bytes.bytes()), {}};
  on_->download(out.bytes.data(), from.bytes);
  if (float_scales_) {
    out.scales.resize(from.scales.bytes() / sizeof(float));
    on_->download(out.scales.data(), from.scales);
    return out;
  }
  std::vector<std::uint8_t> exponents(from.scales.bytes());
  on_->download(exponents.data(), from.scales);
  for (const std::uint8_t e : exponents) out.scales.push_back(static_cast<float>(octavo::e8m0::from_bits(e)));
  return out;
}

host_payload device_payload::fetch() const {
  host_payload out{name_, fetch(rowwise_), {}};
  if (two_images_) out.columnwise = fetch(columnwise_);
  return out;
}

}  // namespace cli
