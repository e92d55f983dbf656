// SPDX-License-Identifier: Apache-2.0
// Every backend that this program was built to know, compiled or not. Defined by the library of octavo_add_engines.
#pragma once

#include <octavo/backend/engine.hpp>

#include <span>

OCTAVO_BEGIN_NAMESPACE

std::span<const backend_entry> all_backends();

OCTAVO_END_NAMESPACE
