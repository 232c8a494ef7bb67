// SPDX-License-Identifier: BSD-3-Clause
//
// The name of a request of one rank, by which its peer refers to it.
//
// state/handle_table.hpp gives handles to the sends that a peer must answer, and to the receives that take bulk bytes.
// A handle is no other number: a tag, a length or an offset does not convert to it, and it has no arithmetic. It
// becomes a plain word only at the head of a chunk, and where a driver carries it with bulk bytes.
//
// Any thread may use a handle: it is a value of one word.
#pragma once

#include <cstdint>

namespace canele::comm {

enum class Handle : std::uint64_t { none = 0 };
static_assert(sizeof(Handle) == 8, "as on the wire");

/// Returns the word that names a request, for the head of a chunk or for a driver.
constexpr std::uint64_t word_of(Handle handle) { return static_cast<std::uint64_t>(handle); }

}  // namespace canele::comm
