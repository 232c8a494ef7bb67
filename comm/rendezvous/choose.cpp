// SPDX-License-Identifier: BSD-3-Clause
//
// Names of the schemes.
#include "comm/rendezvous/choose.hpp"

namespace canele::comm::rendezvous {

const char* name_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::nothing:
      return "nothing";
    case Scheme::receiver_initiated:
      return "receiver_initiated";
    case Scheme::shared_copy:
      return "shared_copy";
    case Scheme::get:
      return "get";
    case Scheme::async_get:
      return "async_get";
    case Scheme::device_get:
      return "device_get";
    case Scheme::stream:
      return "stream";
  }
  return "unknown";
}

}  // namespace canele::comm::rendezvous
