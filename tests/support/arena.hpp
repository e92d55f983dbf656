// SPDX-License-Identifier: Apache-2.0
// The memory of one run. What is put in is an input, to be found unchanged afterwards; what is taken out starts as NaN
// and is fetched into a result, with a look at whether more than it was written.
#pragma once

#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "support/payload_memory.hpp"

namespace octavo_tests {

class arena {
 public:
  explicit arena(const session& on) : on_(on) {}
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  octavo::const_tensor put(const floats& x, octavo::dtype type, const tensor_shape& shape) {
    return inputs_.emplace_back(on_, type, shape, x).view();
  }
  const float* put(const floats& x) { return x.empty() ? nullptr : input_arrays_.emplace_back(on_, x).data(); }
  octavo::offsets put(const offsets& x) { return octavo::offsets_of(input_offsets_.emplace_back(on_, x).data()); }
  octavo::const_quantized put(const payload& x, octavo::dtype type, const tensor_shape& shape) {
    if (x.rowwise.empty()) return {};
    return input_payloads_.emplace_back(on_, shape, type, x).view();
  }

  octavo::tensor take(floats& to, const char* name, octavo::dtype type, const tensor_shape& shape) {
    return outputs_.emplace_back(name, to, tensor_memory(on_, type, shape)).memory.view();
  }
  float* take(floats& to, const char* name, std::int64_t count) {
    return output_arrays_.emplace_back(name, to, array_memory<float>(on_, count)).memory.data();
  }
  octavo::quantized take(payload& to, const char* name, octavo::dtype type, const tensor_shape& shape,
                         const payload_extents& size) {
    return output_payloads_.emplace_back(name, to, payload_memory(on_, shape, type, size)).memory.view();
  }

  /// Fetches all outputs so far. Returns what was touched and must not be. (The queue must be done.)
  std::vector<std::string> collect() {
    std::vector<std::string> violations;
    const auto fetch = [&](auto& list) {
      for (auto& x : list) {
        x.to = x.memory.values();
        if (!x.memory.gaps_intact()) violations.push_back(std::string("memory beside ") + x.name + " was written");
      }
    };
    fetch(outputs_), fetch(output_arrays_), fetch(output_payloads_);
    bool unchanged = true;
    const auto compare = [&](const auto& list) {
      for (const auto& x : list) unchanged = unchanged && x.unchanged();
    };
    compare(inputs_), compare(input_arrays_), compare(input_offsets_), compare(input_payloads_);
    if (!unchanged) violations.emplace_back("an input was changed");
    return violations;
  }

 private:
  template <class Memory>
  struct output {
    using value = std::decay_t<decltype(std::declval<const Memory&>().values())>;
    output(const char* n, value& t, Memory&& m) : name(n), to(t), memory(std::move(m)) {}
    const char* name;
    value& to;
    Memory memory;
  };
  const session& on_;
  // Deques: views stay valid while more is added.
  std::deque<tensor_memory> inputs_;
  std::deque<array_memory<float>> input_arrays_;
  std::deque<array_memory<std::int32_t>> input_offsets_;
  std::deque<payload_memory> input_payloads_;
  std::deque<output<tensor_memory>> outputs_;
  std::deque<output<array_memory<float>>> output_arrays_;
  std::deque<output<payload_memory>> output_payloads_;
};

}  // namespace octavo_tests
