// SPDX-License-Identifier: BSD-3-Clause
//
// Lifelines: to each peer a TCP connection of our own, on which nothing is ever sent. Its end is the peer's end.
//
// Who: the ofi driver, for providers whose names are addresses of listening sockets. Threads: one at a time.
// Surprise: they are never accepted. A peer listens for them; its kernel connects them, and answers keep-alive while
//      it computes or is stopped. They end when its listener closes, with the driver or with the process.
//
//   knocking ──somebody──▶ dialing ──▶ held ──no answer to keep-alive──▶ End::silent
//    │     │                │   ▲       │
//    │     └──never held────┤   └─end───┘     (at most `most_dials`)
//    │       and refused    └──refused, though held before──▶ End::gone
//    ├──refused──▶ End::gone
//    └──not reached in the time of a silence──▶ End::unreachable
//
// Knocking is at the provider's own listener, and tells whether anybody is there. A lifeline that cannot be had (a
// firewall, too many) is done without: nothing is concluded from that.
//
// Rejected: knocking (knock.hpp) at regular times. Connections that are not accepted pile up at a peer that computes,
//     until its kernel drops ours: it would look dead. Keep-alive on the provider's own sockets: it reconnects in
//     silence. Lifelines to the provider's listener: libfabric 1.17 never closes what has been accepted and says
//     nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "drivers/driver.hpp"

namespace canele::drivers::ofi {

class Lifelines {
 public:
  enum class End : std::uint8_t {
    gone,         ///< nobody listens there any more
    silent,       ///< it was reached, and its host no longer answers
    unreachable,  ///< it was never reached
  };
  struct Ended {
    Rank peer;
    End how;
  };

  Lifelines(DriverContext& context, int silence_s) : context_(context), silence_s_(silence_s) {}
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;
  ~Lifelines();

  /// `name`: our endpoint's, beside which we listen. `also`: a descriptor that makes ours readable as well, -1: none.
  /// False: no descriptors left.
  bool open(std::span<const std::byte> name, int also);
  /// Where peers hold theirs, 0: nowhere.
  std::uint16_t port() const { return port_; }
  /// Readable when next() has something to tell, or `also` is.
  int descriptor() const { return epoll_; }
  /// Begins one, if there is none yet and not too many descriptors are in use. `met`: the peer has been heard of.
  void hold(Rank peer, std::span<const std::byte> name, std::uint16_t port, bool met);
  void drop(Rank peer);
  /// Those that have ended, one by one; false: no more. Does not block.
  bool next(Ended* ended);

 private:
  enum class Stage : std::uint8_t { knocking, dialing, held };
  struct Line {
    std::vector<std::byte> name;
    std::uint16_t port = 0;
    Stage stage = Stage::knocking;
    bool was_held = false, was_refused = false;
    int fd = -1;
    int dials_left = 0;
    std::uint64_t since_ns = 0;
  };
  void listen(std::span<const std::byte> name);
  void dial(Rank peer, Line& line, Stage stage);
  void look_at(Rank peer, Line& line);
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
