// SPDX-License-Identifier: BSD-3-Clause
//
// Connector: everything about a peer until its connection is authenticated: listening, dialing, the two at once.
//
// Who: the tcp driver. Threads: one at a time.
// Surprise: an attempt whose TCP connection stands has no time limit: a peer that computes and does not poll is
//      alive. Its kernel keeps the connection; keep-alive finds a dead host.
//
//   inbound:   listener ──▶ Lobby ──proven──▶ Contact.inbound ──flushed──▶ established()
//                                   └─hold──▶ Contact.held (the own attempt goes first: net::resolve_inbound)
//   outbound:  connect() ──▶ Contact: dial next candidate ──▶ Handshake ──▶ established()
//                                     ▲──── next ────┘ none left ──▶ held, else gave_up()
//
// A Contact exists only while a connection is being made; afterwards one byte per rank tells "up" or "failed".
//
// Listeners and the lobby lie behind a net::Door: serve_strangers() looks there on a budget, after all other work of a
// poll. Once all ranks are up nothing listens; when one fails, its next process is to be refused in words.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/net/door.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/net/lobby.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/tcp/address.hpp"

namespace canele::drivers::tcp {

/// What an epoll event belongs to, with a rank or index, in 64 bits.
enum class Source : std::uint32_t { listener, lobby, contact, link, timer, door };
inline std::uint64_t event_tag(Source source, std::uint32_t which) {
  return std::uint64_t{static_cast<std::uint32_t>(source)} << 32 | which;
}
/// Adds `fd` to the epoll set, or changes its tag; edge-triggered but for the timer. False and errno on failure.
bool watch(int epoll, int fd, Source source, std::uint32_t which, bool added_before);

class Connector {
 public:
  /// What comes out of it. Called from step() only.
  class Sink {
   public:
    virtual void established(Rank rank, std::uint64_t incarnation, net::UniqueFd fd, const std::string& where) = 0;
    virtual void gave_up(Rank rank, bool lost, const std::string& reason) = 0;

   protected:
    ~Sink() = default;
  };

  Connector(DriverContext& context, int epoll);

  /// Listens and makes the address. False and *why.
  bool open(Address* address, std::string* why);
  bool reaches_remote() const { return reaches_remote_; }

  Status connect(Rank peer, std::span<const std::byte> address);
  /// Makes everything go on that can. `source`: what epoll told; call it once for each.
  void on_event(Source source, std::uint32_t which);
  /// Does what is due. Returns true if anything moved.
  bool step(Sink& sink);
  /// Answers, or at least looks at, some of what has proven nothing. `now` is the time.
  void serve_strangers(std::uint64_t now);
  /// step() has something to do without any event.
  bool restless() const { return !due_.empty(); }
  /// The engine may sleep as far as strangers are concerned; what they have said may then wake it.
  bool may_sleep(std::uint64_t now) { return door_.may_sleep(now); }
  /// Strangers have said something, and their budget allows to look at it.
  bool strangers_due(std::uint64_t now) const { return door_.is_due(now); }
  /// Connections to ranks are being made.
  bool connecting() const { return !contacts_.empty(); }
  /// Attempts or unproven guests exist, which have time limits.
  bool waiting() const { return connecting() || !lobby_.empty(); }

  bool knows_up(Rank rank) const { return at(rank) == Known::up; }
  bool knows_failed(Rank rank) const { return at(rank) == Known::failed; }
  void set_failed(Rank rank) { set_known(rank, Known::failed); }
  std::uint64_t strangers_refused() const { return lobby_.refused(); }
  std::size_t contacts() const { return contacts_.size(); }

 private:
  enum class Known : std::uint8_t { nothing, up, failed };

  struct Contact {
    Rank rank = 0;
    bool wanted = false;  ///< the engine called connect()
    bool same_host = false;
    bool dialed = false;  ///< the TCP connection stands
    bool due = false;     ///< is in due_
    int retries = 0;
    int dial_error = 0;  ///< of a dial that failed at once
    std::vector<net::Endpoint> candidates;
    std::size_t next = 0;  ///< candidate that is being tried
    std::uint64_t incarnation = 0;
    std::uint64_t since_ns = 0;
    net::UniqueFd fd;
    std::optional<net::Handshake> handshake;
    std::unique_ptr<net::Lobby::Guest> inbound;  ///< answered; its last bytes are going out
    std::unique_ptr<net::Lobby::Guest> held;     ///< proven, not answered
    bool refused = false;                        ///< nobody listens there
    std::string problem;                         ///< what the last attempt failed of
  };

  Known at(Rank rank) const { return known_[static_cast<std::size_t>(rank)]; }
  void set_known(Rank rank, Known known);
  bool watch_listeners(bool on);
  bool accept_guest(int listener);
  void step_guest(std::uint32_t id);
  void turn_away(int listener);
  void on_proven(net::Lobby::Guest&& guest);
  void mark_due(Contact& contact);
  void push_again(Contact& contact, const net::Handshake& handshake);
  void check_limits();
  void dial(Contact& contact);
  void advance(Contact& contact, Sink& sink);
  void advance_inbound(Contact& contact, Sink& sink);
  void check_dial(Contact& contact);
  void next_candidate(Contact& contact, const std::string& problem);
  void take(Contact& contact, std::unique_ptr<net::Lobby::Guest> guest);
  void finish(Contact& contact, const net::Handshake& handshake, net::UniqueFd fd, Sink& sink);
  void give_up(Contact& contact, Sink& sink);

  DriverContext& context_;
  int epoll_;
  net::Party self_;
  std::uint64_t host_ = 0;
  bool reaches_remote_ = false;
  bool listening_ = false;  ///< the listeners are behind the door
  Rank up_ = 0;             ///< ranks that are up
  std::vector<net::UniqueFd> listeners_;
  net::UniqueFd spare_;  ///< given up for a moment to accept and close a connection when descriptors are spent
  net::Door door_;
  net::Lobby lobby_;
  net::Once once_;
  std::map<Rank, Contact> contacts_;
  std::vector<Rank> due_;
  std::vector<Known> known_;  ///< by rank
};

}  // namespace canele::drivers::tcp
