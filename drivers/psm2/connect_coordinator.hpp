// SPDX-License-Identifier: BSD-3-Clause
//
// ConnectCoordinator: coordinates how two processes of one host connect by libpsm2, so that neither waits for a busy
// peer.
//
// Used by the psm2 driver, by one thread at a time.
//
// psm2_ep_connect() blocks until the peer calls libpsm2, at least two seconds before it gives up, and each attempt
// leaves a request in the peer's queue. It is therefore called once, when the peer is known to be inside the library.
// The two agree on that over a datagram socket (the control socket) and a token, an eventfd that both hold. The process
// that reads the token decides alone.
//
//   outbound A                                    inbound B, in its poll()
//     │ ─ request {rank …} + token, page, bell ────▶ │  proof wrong: rejected, nothing else happens
//     │ ◀──────────────────────── page, bell of B ── │
//     │                                    token = 1 │  "I stay for a moment" (at most 1 ms, then B takes it back)
//     │ reads the token: B will stay                 │
//     │ ─ claim ───────────────────────────────────▶ │  B: connects to A as soon as it sees A's request
//     │ psm2_ep_connect(B)      psm2_ep_connect(A)   │
//     │ stays until the token is 1 again ◀────────── │  done: both can send; the handshake follows over libpsm2
//
// If two processes connect to each other, the lower rank's attempt continues and the higher one's is dropped.
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
#include "drivers/psm2/sender_lease_page.hpp"
#include "drivers/psm2/wire.hpp"

namespace canele::drivers::psm2 {

/// Two processes that can send to each other by now. Only knowledge of the secret is proven.
struct Reached {
  Rank rank = -1;
  bool sought = false;  ///< this end is the outbound one
  bool wanted = false;  ///< this end would have been outbound, had the peer not been faster
  psm2_epaddr_t address = nullptr;
  std::int32_t pid = 0;
  net::UniqueFd process;  ///< readable when the peer is dead
  std::uint64_t incarnation = 0;
  SenderLeasePage lease_page;  ///< the peer's
};

class ConnectCoordinator {
 public:
  static constexpr std::size_t most_inbound = 128;

  /// Receives the results of step().
  class Sink {
   public:
    virtual void reached(Reached&& peer) = 0;
    virtual void missed(Rank rank, bool lost, const std::string& reason) = 0;
    /// Returns true if there is a connection to `rank`, or there was one that failed: no process of that rank may
    /// connect then.
    virtual bool knows(Rank rank) const = 0;

   protected:
    ~Sink() = default;
  };

  ConnectCoordinator(DriverContext& context, const net::Party& self, const Endpoint& endpoint)
      : context_(context), self_(self), endpoint_(endpoint) {}

  /// Makes the control socket. False and *reason on failure.
  bool open(std::string* reason);
  const ControlName& control_name() const { return control_; }
  /// Returns this process's lease page: which peer is sending to it, and whether senders have to ring.
  SenderLeasePage& lease_page() { return own_lease_page_; }
  /// Readable when a letter has come, or when a sender rang.
  int letter_box() const { return socket_.get(); }
  int bell() const { return own_lease_page_.bell(); }

  /// Starts to connect to `rank`; reached() or missed() will follow. If the peer is faster, reached() comes with sought
  /// = false.
  void connect(Rank rank, const Whereabouts& where);
  bool is_connecting(Rank rank) const;
  /// Stops connecting, without a report.
  void drop(Rank rank);

  /// Does what can be done now. Takes about a millisecond at most if an inbound peer has to be waited for. Returns true
  /// if anything happened.
  bool step(Sink& sink);
  bool idle() const { return outbound_.empty() && inbound_.empty(); }
  void close();
  std::uint64_t rejected() const { return rejected_; }

 private:
  enum class Type : std::uint16_t { request = 1, claim, rejection, lease_page };
  enum class Why : std::uint16_t { none, secret, mismatch, known };

  struct Frame {
    Type type = Type::request;
    Why why = Why::none;
    Rank from = -1, to = -1;
    std::uint64_t job = 0, incarnation = 0, endpoint = 0;
    ControlName control = {};
    bool proven = false;
  };
  struct Letter {
    Frame frame;
    std::int32_t pid = 0;
    net::UniqueFd fds[3];  ///< the lease page, its bell; a request: the token as well
  };
  struct Outbound {
    Rank rank;
    Whereabouts where;
    net::UniqueFd token, process;
    SenderLeasePage lease_page;
    bool sent = false, claimed = false;
    psm2_epaddr_t address = nullptr;
  };
  struct Inbound {
    Rank rank;
    std::uint64_t endpoint, incarnation;
    std::int32_t pid;
    net::UniqueFd token, process;
    SenderLeasePage lease_page;
    ControlName control;
    bool told = false;  ///< it has this process's lease page
    bool claimed = false, wanted = false;
    std::uint32_t offers = 0, wait = 0;  ///< how often this end has waited for it; polls until the next time
  };
  enum class Progress : std::uint8_t { none, some, complete };

  bool send(const ControlName& to, Type type, Rank rank, Why why, std::span<const int> fds = {});
  static bool open_lease_page(Letter& letter, SenderLeasePage* lease_page);
  bool receive(Letter* letter);
  bool read_letters(Sink& sink);
  void on_request(Letter& letter, Sink& sink);
  void on_rejection(const Letter& letter, Sink& sink);
  Why judge(const Frame& frame, const Sink& sink) const;
  std::uint64_t proof(const std::byte* frame, const ControlName& to) const;

  Progress advance(Outbound& outbound, Sink& sink);
  Progress request(Outbound& outbound, Sink& sink);
  Progress finish(Outbound& outbound, Sink& sink);
  Progress advance(Inbound& inbound, Sink& sink);
  bool invite(Inbound& inbound, Sink& sink);
  Progress welcome(Inbound& inbound, Sink& sink);
  static Progress lose(const Inbound& inbound, Sink& sink);
  bool wait_a_moment(int fd, int other) const;

  DriverContext& context_;
  const net::Party& self_;
  const Endpoint& endpoint_;
  ControlName control_ = {};
  net::UniqueFd socket_, lease_page_memfd_;
  SenderLeasePage own_lease_page_;
  std::list<Outbound> outbound_;
  std::list<Inbound> inbound_;
  std::uint64_t rejected_ = 0;
};

}  // namespace canele::drivers::psm2
