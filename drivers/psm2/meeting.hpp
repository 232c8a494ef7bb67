// SPDX-License-Identifier: BSD-3-Clause
//
// Meeting: coordinates how two processes of one host connect by libpsm2, so that neither waits for a busy peer.
//
// Used by the psm2 driver, by one thread at a time.
//
// psm2_ep_connect() blocks until the peer calls libpsm2, at least two seconds before it gives up, and each attempt
// leaves a request in the peer's queue. It is therefore called once, when the peer is known to be inside the library.
// The two agree on that over a datagram socket (the "door") and a token, an eventfd that both hold. The process that
// reads the token decides alone.
//
//   seeker A                                      host B, in its poll()
//     │ ─ knock {rank …} + token, ledger, bell ────▶ │  proof wrong: refused, nothing else happens
//     │ ◀────────────────────── ledger, bell of B ── │
//     │                                    token = 1 │  "I stay for a moment" (at most 1 ms, then B takes it back)
//     │ reads the token: B will stay                 │
//     │ ─ claim ───────────────────────────────────▶ │  B: connects to A as soon as it sees A's request
//     │ psm2_ep_connect(B)      psm2_ep_connect(A)   │
//     │ stays until the token is 1 again ◀────────── │  done: both can send; the handshake follows over libpsm2
//
// If two processes seek each other, the lower rank's attempt continues and the higher one's is dropped.
//
// Rejected: short limits for psm2_ep_connect() (libpsm2 raises them to two seconds). Rejected: a thread (it holds the
// library's lock while it waits, so all other threads wait; and the contract has no threads).
#pragma once

#include <functional>
#include <list>
#include <string>

#include "drivers/driver.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/psm2/endpoint.hpp"
#include "drivers/psm2/ledger.hpp"
#include "drivers/psm2/wire.hpp"

namespace canele::drivers::psm2 {

/// Two processes that can send to each other by now. Only knowledge of the secret is proven.
struct Met {
  Rank rank = -1;
  bool sought = false;  ///< this end was the seeker
  bool wanted = false;  ///< this end would have been the seeker, had the peer not been faster
  psm2_epaddr_t address = nullptr;
  std::int32_t pid = 0;
  net::UniqueFd process;  ///< readable when the peer is dead
  std::uint64_t incarnation = 0;
  Ledger ledger;  ///< the peer's
};

class Meeting {
 public:
  static constexpr std::size_t most_guests = 128;

  /// Receives the results of step().
  class Sink {
   public:
    virtual void met(Met&& met) = 0;
    virtual void missed(Rank rank, bool lost, const std::string& reason) = 0;
    /// Returns true if there is a connection to `rank`, or there was one that failed: no process of that rank may knock
    /// then.
    virtual bool knows(Rank rank) const = 0;

   protected:
    ~Sink() = default;
  };

  Meeting(DriverContext& context, const net::Party& self, const Endpoint& endpoint)
      : context_(context), self_(self), endpoint_(endpoint) {}

  /// Makes the door. False and *reason on failure.
  bool open(std::string* reason);
  const DoorName& door() const { return door_; }
  /// Returns this process's ledger: which peer is sending to it, and whether senders have to ring.
  Ledger& ledger() { return own_ledger_; }
  /// Readable when a letter has come, or when a sender rang.
  int letter_box() const { return socket_.get(); }
  int bell() const { return own_ledger_.bell(); }

  /// Starts to seek `rank`; met() or missed() will follow. If the peer is faster, met() comes with sought = false.
  void seek(Rank rank, const Whereabouts& where);
  bool seeks(Rank rank) const;
  /// Stops seeking, without a report.
  void drop(Rank rank);

  /// Does what can be done now. Takes about a millisecond at most if a guest has to be waited for. Returns true if
  /// anything happened.
  bool step(Sink& sink);
  bool idle() const { return seekers_.empty() && guests_.empty(); }
  void close();
  std::uint64_t refused() const { return refused_; }

 private:
  enum class Type : std::uint16_t { knock = 1, claim, refusal, ledger };
  enum class Why : std::uint16_t { none, secret, stranger, known };

  struct Frame {
    Type type = Type::knock;
    Why why = Why::none;
    Rank from = -1, to = -1;
    std::uint64_t job = 0, incarnation = 0, endpoint = 0;
    DoorName door = {};
    bool proven = false;
  };
  struct Letter {
    Frame frame;
    std::int32_t pid = 0;
    net::UniqueFd fds[3];  ///< the ledger, its bell; a knock: the token as well
  };
  struct Seeker {
    Rank rank;
    Whereabouts where;
    net::UniqueFd token, process;
    Ledger ledger;
    bool sent = false, claimed = false;
    psm2_epaddr_t address = nullptr;
  };
  struct Guest {
    Rank rank;
    std::uint64_t endpoint, incarnation;
    std::int32_t pid;
    net::UniqueFd token, process;
    Ledger ledger;
    DoorName door;
    bool told = false;  ///< it has this process's ledger
    bool claimed = false, wanted = false;
    std::uint32_t offers = 0, wait = 0;  ///< how often this end has waited for it; polls until the next time
  };
  enum class Progress : std::uint8_t { none, some, over };

  bool send(const DoorName& to, Type type, Rank rank, Why why, std::span<const int> fds = {});
  static bool open_ledger(Letter& letter, Ledger* ledger);
  bool receive(Letter* letter);
  bool read_letters(Sink& sink);
  void on_knock(Letter& letter, Sink& sink);
  void on_refusal(const Letter& letter, Sink& sink);
  Why judge(const Frame& frame, const Sink& sink) const;
  std::uint64_t proof(const std::byte* frame, const DoorName& to) const;

  Progress advance(Seeker& seeker, Sink& sink);
  Progress knock(Seeker& seeker, Sink& sink);
  Progress finish(Seeker& seeker, Sink& sink);
  Progress advance(Guest& guest, Sink& sink);
  bool invite(Guest& guest, Sink& sink);
  Progress welcome(Guest& guest, Sink& sink);
  static Progress lose(const Guest& guest, Sink& sink);
  bool wait_a_moment(int fd, int other) const;

  DriverContext& context_;
  const net::Party& self_;
  const Endpoint& endpoint_;
  DoorName door_ = {};
  net::UniqueFd socket_, ledger_;
  Ledger own_ledger_;
  std::list<Seeker> seekers_;
  std::list<Guest> guests_;
  std::uint64_t refused_ = 0;
};

}  // namespace canele::drivers::psm2
