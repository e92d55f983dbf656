// SPDX-License-Identifier: Apache-2.0
// A short sentence in a fixed buffer: how reasons and errors travel without allocation or exceptions.
#pragma once

#include <octavo/config.hpp>

#include <cstddef>
#include <string_view>

OCTAVO_BEGIN_NAMESPACE

/// A sentence of at most 383 characters; what does not fit is cut.
class text {
 public:
  constexpr text() = default;
  constexpr text(std::string_view s) { *this << s; }
  constexpr text(const char* s) { *this << std::string_view(s); }

  constexpr text& operator<<(std::string_view s) {
    for (char c : s)
      if (size_ + 1 < capacity) buffer_[size_++] = c;
    buffer_[size_] = '\0';
    return *this;
  }
  constexpr text& operator<<(const char* s) { return *this << std::string_view(s); }
  constexpr text& operator<<(long long value) {
    char digits[24] = {};
    int n = 0;
    // Digits of the negative value, so that the smallest integer needs no special case.
    long long rest = value < 0 ? value : -value;
    do digits[n++] = static_cast<char>('0' - rest % 10);
    while (rest /= 10);
    if (value < 0) digits[n++] = '-';
    while (n > 0) *this << std::string_view(&digits[--n], 1);
    return *this;
  }
  constexpr text& operator<<(long value) { return *this << static_cast<long long>(value); }
  constexpr text& operator<<(int value) { return *this << static_cast<long long>(value); }

  constexpr const char* c_str() const { return buffer_; }
  constexpr std::string_view view() const { return {buffer_, size_}; }
  constexpr bool empty() const { return size_ == 0; }

 private:
  static constexpr std::size_t capacity = 384;
  char buffer_[capacity] = {};
  std::size_t size_ = 0;
};

OCTAVO_END_NAMESPACE
