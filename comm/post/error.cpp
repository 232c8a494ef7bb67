// SPDX-License-Identifier: BSD-3-Clause
//
// The description of the last error of each thread.
#include "comm/post/error.hpp"

#include <canele/canele.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace canele::comm::post {
namespace {
thread_local std::string last_detail;
thread_local const char* fixed_detail = nullptr;  ///< used instead of last_detail if there was no memory for a text

int fixed_error(int code, const char* words) {
  fixed_detail = words;
  return code;
}
}  // namespace

int error(int code, std::string words) {
  last_detail = std::move(words);
  fixed_detail = nullptr;
  return code;
}

int error(int code, const char* call, const char* words) { return error(code, std::string(call) + ": " + words); }

int caught() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fixed_error(CANELE_ENOMEM, "the system has no memory");
  } catch (const std::length_error&) {
    return fixed_error(CANELE_ENOMEM, "the requested memory exceeds the address space");
  } catch (const std::system_error&) {
    return fixed_error(CANELE_ENOMEM, "the system can create no thread or lock");
  }
}

int reject_in_child(const char* call) {
  return error(CANELE_EFORK, std::string(call) +
                                 ": this process is the child of a fork, and the engine belongs to its parent; "
                                 "expected: a new program, or a fork before canele_init");
}

const char* detail() noexcept { return fixed_detail != nullptr ? fixed_detail : last_detail.c_str(); }

}  // namespace canele::comm::post
