// SPDX-License-Identifier: BSD-3-Clause
//
// Error codes with a description, versions, and the end of exceptions at the C ABI.
//
// Any thread; the detail belongs to the calling thread.
#include <new>
#include <stdexcept>
#include <system_error>

#include "comm/api/api.hpp"

namespace canele::comm::api {
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

bool resume_unless_in_child(Engine& engine) {
  if (fork::in_child) return false;
  engine.resume_put_off();
  return true;
}

int refuse_in_child(const char* call) {
  return error(CANELE_EFORK, std::string(call) +
                                 ": this process is the child of a fork, and the engine belongs to its parent; "
                                 "expected: a new program, or a fork before canele_init");
}

}  // namespace canele::comm::api

const char* canele_error_string(int error) {
  switch (error) {
    case CANELE_OK:
      return "no error";
    case CANELE_EINVAL:
      return "invalid argument or setting";
    case CANELE_ERANK:
      return "no such rank";
    case CANELE_ETRUNC:
      return "message longer than the receive";
    case CANELE_ECANCELED:
      return "cancelled, or dropped by the receiver";
    case CANELE_EPEER:
      return "peer died or left";
    case CANELE_EDEADLK:
      return "blocking call inside a completion callback";
    case CANELE_ENOMEM:
      return "out of memory";
    case CANELE_EBOOTSTRAP:
      return "launcher not reached, or a rank is missing";
    case CANELE_EVERSION:
      return "versions of the library differ";
    case CANELE_ESTATE:
      return "object is in the wrong state for this call";
    case CANELE_EDRIVER:
      return "no driver can reach the peer";
    case CANELE_ETIMEOUT:
      return "timed out";
    case CANELE_EBUSY:
      return "busy";
    case CANELE_EPROTOCOL:
      return "peer violated the protocol";
    case CANELE_EFORK:
      return "engine belongs to the process before the fork";
  }
  return "unknown error code";
}

const char* canele_error_detail(void) {
  using namespace canele::comm::api;
  return fixed_detail != nullptr ? fixed_detail : last_detail.c_str();
}

const char* canele_version(void) { return CANELE_VERSION; }

int canele_abi_check(int abi) try {
  if (abi == CANELE_ABI_VERSION) return CANELE_OK;
  return canele::comm::api::error(CANELE_EVERSION, "the program was compiled for ABI " + std::to_string(abi) +
                                                       " of canele, the library loaded (" CANELE_VERSION ") has ABI " +
                                                       std::to_string(CANELE_ABI_VERSION) + ": compile it again");
} catch (...) {
  return canele::comm::api::caught();
}
