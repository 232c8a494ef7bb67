// SPDX-License-Identifier: BSD-3-Clause
//
// Inbound connections that cannot be accepted. See accept_failures.hpp.
#include "drivers/net/accept_failures.hpp"

#include <fcntl.h>

#include "drivers/net/accept_limiter.hpp"

namespace canele::drivers::net {

bool AcceptFailures::open() {
  spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(spare_);
}

/// Gives up the spare descriptor for a moment to close the first connection of the queue. Returns false if there was no
/// spare descriptor, or none for the connection.
bool AcceptFailures::close_one(int listener) {
  const bool had = static_cast<bool>(spare_);
  spare_.reset();
  const bool closed = had && static_cast<bool>(accept_one(listener));
  open();
  return closed;
}

bool AcceptFailures::handle(DriverContext& context, int listener, int error) {
  const std::uint64_t now = context.now_ns();
  if (is_out_of_descriptors(error)) {
    once_.log(context, 1, "no descriptors left; inbound connections are closed: raise the limit (ulimit -n)");
    if (close_one(listener)) {
      note_accepted();
      return true;
    }
  } else {
    once_.log(context, 1, "an inbound connection cannot be accepted: " + error_text(error));
  }
  if (since_ns_ == 0) since_ns_ = now;
  if (now - since_ns_ < patience_ns) return true;
  context.log(1, "no inbound connection could be accepted for 2 s: this rank stops listening");
  return false;
}

}  // namespace canele::drivers::net
