// SPDX-License-Identifier: BSD-3-Clause
//
// Errors with a description, for canele_error_detail; and the end of exceptions at the C ABI.
//
// Any thread; the description belongs to the calling thread.
#pragma once

#include <string>

namespace canele::comm::post {

/// Keeps `words` for canele_error_detail and returns `code`.
int error(int code, std::string words);
/// The same for a call, with words that need nothing put in.
[[gnu::cold]] int error(int code, const char* call, const char* words);

/// Returns the description of the calling thread's last error.
const char* detail() noexcept;

/// Translates the current exception into an error code, in the catch handler of a C function. An exception that no
/// function of the library throws came out of a function of the program; it ends the program.
[[gnu::cold]] int caught() noexcept;

/// Returns CANELE_EFORK with a description, in the child of a fork. For calls that take no rank: `if (fork::in_child)`.
[[gnu::cold]] int reject_in_child(const char* call);

}  // namespace canele::comm::post
