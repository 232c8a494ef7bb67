// SPDX-License-Identifier: BSD-3-Clause
//
// Error codes in words, and versions.
//
// Any thread; the detail belongs to the calling thread.
#include "comm/api/api.hpp"

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
    case CANELE_EAGAIN:
      return "no room now: make progress, then try again";
    case CANELE_EACCESS:
      return "access beyond the memory, or not allowed by the key";
    case CANELE_EREVOKED:
      return "memory or notification slot no longer there";
    case CANELE_ENOENT:
      return "no value is published under this key";
    case CANELE_EDEVICE:
      return "a device failed";
    case CANELE_DONE:
      return "ended within its post";
  }
  return "unknown error code";
}

const char* canele_error_detail(void) { return canele::comm::post::detail(); }

const char* canele_version(void) { return CANELE_VERSION; }

int canele_abi_check(int abi) try {
  if (abi == CANELE_ABI_VERSION) return CANELE_OK;
  return canele::comm::api::error(CANELE_EVERSION, "the program was compiled for ABI " + std::to_string(abi) +
                                                       " of canele, the library loaded (" CANELE_VERSION ") has ABI " +
                                                       std::to_string(CANELE_ABI_VERSION) + ": compile it again");
} catch (...) {
  return canele::comm::api::caught();
}
