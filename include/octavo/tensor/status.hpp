// SPDX-License-Identifier: Apache-2.0
// What a call answers: done, or which kind of failure with one sentence about it.
#pragma once

#include <octavo/tensor/text.hpp>

OCTAVO_BEGIN_NAMESPACE

enum class status_code {
  ok,
  invalid_argument,     ///< the problem or a tensor contradicts itself or the contract: nothing was written
  unsupported,          ///< a valid problem that this config does not compute: nothing was written
  workspace_too_small,  ///< fewer bytes than workspace_size says: nothing was written
  launch_failure,       ///< the device or the operating system refused: outputs are undefined
};

struct [[nodiscard]] status {
  status_code code = status_code::ok;
  text message;

  constexpr bool ok() const { return code == status_code::ok; }
  constexpr explicit operator bool() const { return ok(); }
};

OCTAVO_END_NAMESPACE
