// SPDX-License-Identifier: BSD-3-Clause
//
// Sink: a further use of the data that a receive gets. A multicast hands the data on, and knows other ranks to ask.
//
// Called by the thread that holds the engine's lock: protocol/ and rendezvous/, if a request has a receive.sink.
#pragma once

#include <cstdint>

#include "comm/state/under_lock.hpp"

namespace canele::comm {

class Context;
struct Peer;
struct Request;

class Sink {
 public:
  /// Handles that a receive with a buffer meets the message. Returns true if the sink does all that is left to do.
  virtual bool attach_receive(Context& context, Request& request) CANELE_UNDER_LOCK = 0;
  /// Returns the peer to ask for the data.
  virtual Peer& next_source(Context& context) const CANELE_UNDER_LOCK = 0;
  /// Handles that [offset, expected) of the data is to be asked of a peer, as `request.handle`. Returns true if the
  /// sink has asked, false if the caller sends a clear to send.
  virtual bool request_data(Context& context, Request& request, Peer& from, std::uint64_t offset) CANELE_UNDER_LOCK = 0;
  /// Asks for the data again. No driver may write the data any more.
  virtual void request_again(Context& context, Request& request) CANELE_UNDER_LOCK = 0;
  /// Returns whether another rank has the data, when this peer is gone.
  virtual bool outlives(const Peer& peer) const = 0;
  /// Handles that a driver begins to write the data.
  virtual void on_bulk_begun() = 0;
  //// on_progress() handles that a stream for this request has come further, on_done() that it has ended.
  virtual void on_progress(Context& context, Request& request) CANELE_UNDER_LOCK = 0;
  virtual void on_done(Context& context, const Request& request, Peer& from) CANELE_UNDER_LOCK = 0;
  /// Handles that the receive has all that it wanted, or will never have it. The sink finishes the request.
  virtual void on_receive_end(Context& context, Request& request, int outcome) CANELE_UNDER_LOCK = 0;

 protected:
  ~Sink() = default;
};

}  // namespace canele::comm
