// SPDX-License-Identifier: BSD-3-Clause
//
// Connector: handles a peer until its connection is authenticated: listening, dialing, simultaneous connections.
//
// Used by the tcp driver, by one thread at a time.
//
//   inbound:   listener ──▶ PendingConnections ──proven──▶ Contact.inbound ──flushed──▶ established()
//                                   └─defer─▶ Contact.deferred (the own attempt goes first: net::resolve_inbound)
//   outbound:  connect() ──▶ Contact.race: addresses of the peer, several at a time ──won──▶ established()
//                                          └─lost──▶ deferred, else gave_up()
//
// A Contact exists only while a connection is being made. Afterwards one byte per rank tells "up" or "failed".
//
// Listeners and pending connections lie behind a net::AcceptLimiter: serve_pending() looks there on a budget, after all
// other work of a poll. Once all ranks are up, the driver does not listen. When a rank fails it listens again, so that
// the next process of that rank is rejected with a reason.
//
// An attempt has no time limit once its TCP connection is established, unless other addresses are left: a peer that
// computes and does not poll is alive. The peer's kernel keeps the connection; keep-alive detects a dead host.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/net/accept_failures.hpp"
#include "drivers/net/accept_limiter.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/net/interface.hpp"
#include "drivers/net/pending_connections.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/tcp/address.hpp"
#include "drivers/tcp/race.hpp"

namespace canele::drivers::tcp {

/// What an epoll event belongs to; event_tag() packs it with a rank or index into 64 bits.
enum class Source : std::uint32_t { listener, pending, contact, link, timer, limiter };
inline std::uint64_t event_tag(Source source, std::uint32_t which) {
  return std::uint64_t{static_cast<std::uint32_t>(source)} << 32 | which;
}
/// Adds `fd` to the epoll set, or changes its tag. Edge-triggered except for the timer. False and errno on failure.
bool watch(int epoll, int fd, Source source, std::uint32_t which, bool added_before);

class Connector {
 public:
  /// Receives the results. Called from step() only.
  class Sink {
   public:
    virtual void established(Rank rank, std::uint64_t incarnation, net::UniqueFd fd, const std::string& where) = 0;
    virtual void gave_up(Rank rank, bool lost, const std::string& reason) = 0;

   protected:
    ~Sink() = default;
  };

  Connector(DriverContext& context, int epoll);

  /// Listens and makes the address. False and *why on failure.
  bool open(Address* address, std::string* why);
  bool reaches_remote() const { return reaches_remote_; }

  Status connect(Rank peer, std::span<const std::byte> address);
  /// Handles an event of epoll; call it once for each. `source`: what the event belongs to.
  void on_event(Source source, std::uint32_t which);
  /// Does what is due. Returns true if anything moved.
  bool step(Sink& sink);
  /// Accepts and serves some of the unauthenticated peers. `now` is the time in nanoseconds.
  void serve_pending(std::uint64_t now);
  /// Returns true if step() has something to do without any event.
  bool restless() const { return !due_.empty(); }
  /// Returns true if the unauthenticated peers allow the engine to sleep; their data may then wake it.
  bool may_sleep(std::uint64_t now) { return limiter_.may_sleep(now); }
  /// Returns true if unauthenticated peers have sent something, and their budget allows to handle it.
  bool pending_due(std::uint64_t now) const { return limiter_.is_due(now); }
  /// Returns true if the next address of a rank is to be tried soon, without any event.
  bool racing() const;
  /// Returns true while connections to ranks are being made.
  bool connecting() const { return !contacts_.empty(); }
  /// Returns true while there are attempts or pending connections, which have time limits.
  bool waiting() const { return connecting() || !pending_.empty(); }

  bool knows_up(Rank rank) const { return at(rank) == Known::up; }
  bool knows_failed(Rank rank) const { return at(rank) == Known::failed; }
  void set_failed(Rank rank) { set_known(rank, Known::failed); }
  std::uint64_t pending_rejected() const { return pending_.rejected(); }
  std::size_t contacts() const { return contacts_.size(); }

 private:
  enum class Known : std::uint8_t { nothing, up, failed };

  struct Contact {
    Rank rank = 0;
    bool due = false;  ///< is in due_
    int restarts = 0;
    std::unique_ptr<Race> race;                                     ///< exists once the engine has called connect()
    std::unique_ptr<net::PendingConnections::Connection> inbound;   ///< answered; its last bytes are being sent
    std::unique_ptr<net::PendingConnections::Connection> deferred;  ///< proven, not answered
  };

  Known at(Rank rank) const { return known_[static_cast<std::size_t>(rank)]; }
  void set_known(Rank rank, Known known);
  bool watch_listeners(bool on);
  bool accept_pending(int listener);
  void step_pending(std::uint32_t id);
  void stop_listening();
  void on_proven(net::PendingConnections::Connection&& connection);
  void mark_due(Contact& contact);
  void push_again(Contact& contact, const net::Handshake& handshake);
  void check_limits();
  net::UniqueFd dial(Rank rank, const net::Endpoint& to);
  void advance(Contact& contact, Sink& sink);
  void advance_inbound(Contact& contact, Sink& sink);
  void report_detour(const Contact& contact, const net::Endpoint& where);
  void take(Contact& contact, std::unique_ptr<net::PendingConnections::Connection> connection);
  void finish(Rank rank, std::uint64_t incarnation, net::UniqueFd fd, Sink& sink);
  void give_up(Contact& contact, Sink& sink);

  DriverContext& context_;
  int epoll_;
  net::Party self_;
  std::uint64_t host_ = 0;
  bool reaches_remote_ = false;
  bool listening_ = false;  ///< the listeners are behind the limiter
  /// Addresses of the interface that the user has named. Connections leave from there: on one subnet, the kernel would
  /// send those of all rails by one interface. Empty: no interface is named.
  std::vector<net::Endpoint> sources_;
  std::vector<net::Interface> interfaces_;  ///< of this host
  Rank up_ = 0;                             ///< number of ranks that are up
  std::vector<net::UniqueFd> listeners_;
  net::AcceptFailures accept_failures_;
  net::AcceptLimiter limiter_;
  net::PendingConnections pending_;
  net::Once once_;
  std::map<Rank, Contact> contacts_;
  std::vector<Rank> due_;
  std::vector<Known> known_;  ///< by rank
};

}  // namespace canele::drivers::tcp
