// SPDX-License-Identifier: BSD-3-Clause
//
// Race: the attempts to connect to one rank. It tries several of the peer's addresses at a time, and takes the first
// one over which the peer proves the job's secret and its rank.
//
// Used by the connector, by one thread at a time. Source: "happy eyeballs", RFC 8305, with the proof instead of the TCP
// connection as the finish.
//
//   waiting ──begin──▶ attempt: dialing ──▶ connected ──Hello──▶ told ──proven──▶ won
//      ▲                    │  gave way, or the peer was busy      │
//      └────────────────────┴──────────────────────────────────────┘   any other end: the address is out
//
// The next address is begun when an attempt ends, or when the newest one makes no progress for its patience (below).
//
// An attempt that is `told` has sent this rank's identity, and the peer may already use that connection. While one is
// told, the other attempts rest, so that the peer gets one identity and not several. Only an attempt that is not told
// may be dropped at any time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "drivers/net/handshake.hpp"
#include "drivers/net/socket.hpp"

namespace canele::drivers::tcp {

class Race {
 public:
  static constexpr std::size_t most_open = 4;  ///< attempts at a time
  static constexpr int max_retries = 32;       ///< per address; the peer may be too busy to keep a connection
  // Patience with the newest attempt until the next address is begun:
  static constexpr std::uint64_t dial_patience_ns = 50'000'000;       ///< while TCP is not connected
  static constexpr std::uint64_t hello_patience_ns = 250'000'000;     ///< after that, while the peer says nothing
  static constexpr std::uint64_t told_patience_ns = 3'000'000'000;    ///< after that
  static constexpr std::uint64_t dial_limit_ns = 10'000'000'000;      ///< until an attempt without TCP ends
  static constexpr std::uint64_t gives_way_after_ns = 1'000'000'000;  ///< a silent attempt, if addresses wait

  enum class State : std::uint8_t {
    running,
    won,   ///< take() has the connection.
    lost,  ///< every address is out; problem() says why.
  };

  /// Starts to connect to an address. Returns an empty descriptor and errno on failure.
  using Dial = std::function<net::UniqueFd(const net::Endpoint&)>;

  /// `addresses`: best first, at least one. `incarnation`: that of the peer. `same_host`: the first address is sure to
  /// lead to the peer, which may compute and not answer. The addresses are then tried one after the other.
  Race(Rank peer, std::uint64_t incarnation, std::vector<net::Endpoint> addresses, bool same_host);

  /// Begins the attempts that are due, and advances the open ones. Call it when a socket of an attempt is ready, and
  /// when is_due(). Never blocks.
  State step(const net::Party& self, DriverContext& context, const Dial& dial);

  /// Returns whether step() has something to do at time `now` without an event.
  bool is_due(std::uint64_t now) const;
  /// Returns whether addresses wait for a time to pass.
  bool has_waiting() const { return !waiting_.empty() && !same_host_; }
  /// Returns whether an open attempt has sent this rank's identity.
  bool is_told() const;
  /// Returns whether output is left that no event may announce (a host without memory).
  bool wants_write() const;

  /// Drops all attempts and tries every address again.
  void restart();

  struct Winner {
    net::UniqueFd fd;
    std::uint64_t incarnation;
  };
  /// Returns the connection. Requires State::won.
  Winner take();

  bool same_host() const { return same_host_; }
  /// Returns the address that is begun first.
  const net::Endpoint& best() const { return addresses_.front().where; }
  /// Returns whether the last attempt that failed found no process that listens.
  bool refused() const { return refused_; }
  /// Returns why the last attempt failed. Empty: none has.
  const std::string& problem() const { return problem_; }
  /// Returns how many attempts are open, and how many have been begun. For tests.
  std::size_t open() const { return open_.size(); }
  int begun() const { return begun_; }

 private:
  struct Address {
    net::Endpoint where;
    int retries = 0;
  };
  struct Attempt {
    std::size_t address;  ///< index in addresses_
    net::UniqueFd fd;
    std::uint64_t since_ns;
    std::optional<net::Handshake> handshake;  ///< once TCP is connected
    std::uint64_t told_ns = 0;                ///< when the peer's Hello arrived; 0: not yet
  };
  /// How an attempt goes on.
  enum class Next : std::uint8_t { stays, won, again, out };

  Next advance(Attempt& attempt, const net::Party& self, DriverContext& context);
  Next check_dial(Attempt& attempt, const net::Party& self, DriverContext& context);
  State advance_open(const net::Party& self, DriverContext& context);
  bool rests(const Attempt& attempt, std::uint64_t now) const;
  bool may_begin(std::uint64_t now);
  bool make_room(std::uint64_t now);
  void begin(std::uint64_t now, const Dial& dial);
  void note_failure(std::size_t address, const std::string& why);
  void note_end(std::uint64_t now);
  void wait_at_least(std::uint64_t until_ns) { next_begin_ns_ = std::max(next_begin_ns_, until_ns); }

  Rank peer_;
  std::uint64_t incarnation_;
  bool same_host_;
  std::vector<Address> addresses_;
  std::deque<std::size_t> waiting_;  ///< indices, in the order in which they will be begun
  std::vector<Attempt> open_;        ///< oldest first
  std::uint64_t next_begin_ns_ = 0;
  std::optional<Attempt> winner_;
  bool refused_ = false;
  std::string problem_;
  int begun_ = 0;
};

}  // namespace canele::drivers::tcp
