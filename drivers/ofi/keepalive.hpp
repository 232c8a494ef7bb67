// SPDX-License-Identifier: BSD-3-Clause
//
// Keepalives: a keepalive connection (TCP) to each peer, on which nothing is ever sent. Its end is the peer's end.
//
// Used by the ofi driver, for providers whose names are addresses of listening sockets, by one thread at a time.
//
//   probing ───is there──▶ dialing ──▶ connected ──no answer to keep-alive──▶ End::silent
//    │     │                │   ▲       │
//    │     └never connected─┤   └─end───┘     (at most `most_dials`)
//    │       and refused    └──refused, though connected before──▶ End::exited
//    ├──refused──▶ End::exited
//    └──not reached in the time of a silence──▶ End::unreachable
//
// Keepalive connections are never accepted. A peer listens for them; its kernel connects them, and answers keep-alive
// while the peer computes or is stopped. They end when the peer's listener closes, with the driver or with the process.
//
// Probing goes to the provider's own listener, and tells whether a process is there. A peer may be without a keepalive
// connection (a firewall, too many): nothing is concluded from that.
//
// Rejected: probing (liveness_probe.hpp) at regular times. Connections that are not accepted pile up at a peer that
// computes, until its kernel drops new ones: the peer would look dead. Rejected: keep-alive on the provider's own
// sockets: it reconnects silently. Rejected: keepalive connections to the provider's listener: libfabric 1.17 never
// closes what has been accepted and reports nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "drivers/driver.hpp"

namespace canele::drivers::ofi {

class Keepalives {
 public:
  enum class End : std::uint8_t {
    exited,       ///< no process listens there any more
    silent,       ///< it was reached, and its host no longer answers
    unreachable,  ///< it was never reached
  };
  struct Ended {
    Rank peer;
    End how;
  };

  Keepalives(DriverContext& context, int silence_s) : context_(context), silence_s_(silence_s) {}
  Keepalives(const Keepalives&) = delete;
  Keepalives& operator=(const Keepalives&) = delete;
  ~Keepalives();

  /// Listens and makes the epoll set. `name`: the name of this endpoint; the listener uses its address with another
  /// port. `also`: a descriptor that makes descriptor() readable as well, -1: none. Returns false if no descriptors are
  /// left.
  bool open(std::span<const std::byte> name, int also);
  /// Returns the port for the peers' keepalive connections, 0: none.
  std::uint16_t port() const { return port_; }
  /// Readable when next() has something to report, or `also` is readable.
  int descriptor() const { return epoll_; }
  /// Begins a keepalive connection, if there is none yet and not too many descriptors are in use. `met`: the handshake
  /// is complete.
  void connect(Rank peer, std::span<const std::byte> name, std::uint16_t port, bool met);
  void drop(Rank peer);
  /// Returns the keepalive connections that have ended, one by one; false: no more. Does not block.
  bool next(Ended* ended);

 private:
  enum class Stage : std::uint8_t { probing, dialing, connected };
  struct Line {
    std::vector<std::byte> name;
    std::uint16_t port = 0;
    Stage stage = Stage::probing;
    bool was_connected = false, was_refused = false;
    int fd = -1;
    int dials_left = 0;
    std::uint64_t since_ns = 0;
  };
  void listen(std::span<const std::byte> name);
  void dial(Rank peer, Line& line, Stage stage);
  void check(Rank peer, Line& line);
  void reached(Rank peer, Line& line);
  void refused(Rank peer, Line& line);
  void failed(Rank peer, Line& line);
  void end(Rank peer, End how);

  DriverContext& context_;
  const int silence_s_;
  int epoll_ = -1, listener_ = -1;
  std::uint16_t port_ = 0;
  std::size_t limit_ = 0;
  std::map<Rank, Line> lines_;
  std::vector<Ended> ended_;
};

}  // namespace canele::drivers::ofi
