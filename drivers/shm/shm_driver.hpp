// SPDX-License-Identifier: BSD-3-Clause
//
// ShmDriver: the driver contract over channels (data path: data_path.cpp) and unix sockets (connection set-up:
// connections.cpp; start, unauthenticated peers and deaths: control.cpp).
//
// shm_factory makes it; the engine calls it under its lock (memory_only). drivers/driver.hpp gives the threading. Sends
// and polls make no system call. Work that needs one (new connections, deaths) waits for check_sockets().
// check_sockets() runs once in many polls, so that it takes little of a spinning core's time, and always after a sleep.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "drivers/net/accept_failures.hpp"
#include "drivers/net/accept_limiter.hpp"
#include "drivers/net/once.hpp"
#include "drivers/shm/broadcast_segment.hpp"
#include "drivers/shm/peer.hpp"

namespace canele::drivers::shm {

/// What an epoll event is about: the kind in the upper half, the connection or rank in the lower.
enum class Tag : std::uint64_t { limiter, listener, connection, peer, process };
constexpr std::uint64_t tag(Tag kind, std::uint64_t id = 0) { return static_cast<std::uint64_t>(kind) << 32 | id; }

inline constexpr int setup_polls = 16;  ///< most polls between two checks while a connection is being set up

class ShmDriver final : public Driver {
 public:
  ~ShmDriver() override { close_impl(); }

 private:
  // The contract.
  Status open_impl(DriverContext&, Address*, std::string* reason) override;
  Status connect_impl(Rank, std::span<const std::byte> address) override;
  Status send_inline_impl(Rank, const void*, std::size_t, const void*, std::size_t) override;
  Status send_packet_impl(Rank, const iovec*, int, std::size_t, Token) override;
  std::span<std::byte> reserve_impl(Rank, std::size_t) override;
  void commit_impl(Rank, std::size_t) override;
  Status bulk_send_impl(Rank, std::uint64_t, std::uint64_t, const iovec*, int, std::size_t, Token) override;
  Status register_memory_impl(Rank, RmaOp, const iovec*, int, MemoryKey*) override;
  void deregister_impl(std::uint64_t handle) override { segment_.release(handle); }
  Status rma_impl(Rank, RmaOp, std::span<const std::byte>, std::uint64_t, const iovec*, int, std::size_t,
                  Token) override;
  int poll_impl(int budget) override;
  int descriptor_impl() const override { return epoll_.get(); }
  bool arm_impl(bool on) override;
  bool wants_wake_impl(Rank) override;
  void wake_impl(Rank) override;
  void close_impl() override;

  // data_path.cpp
  Peer* peer_at(Rank rank) const { return peers_[rank].load(std::memory_order_acquire); }
  Peer* open_peer(Rank rank) const;
  Status send_lines(Peer&, const void* head, std::size_t head_size, const void* body, std::size_t body_size);
  Status send_record(Peer&, const iovec*, int, std::size_t);
  void publish_record(Peer&, std::size_t size, Kind, Place);
  void back_whole_ring(Peer&);
  Status starve(Peer&, std::size_t wanted);
  void note_sleep(Peer&);
  void wake_if_starved(Peer&);
  Peer& next_ring();
  static bool takes(const Peer&, std::uint64_t mail);
  int poll_rings(int budget);
  int drain_rings(Peer*, std::uint64_t mail, std::size_t others, int budget);
  int poll_slow_path(int budget);
  void show_ahead(Peer& peer);
  int receive(Peer&, std::uint64_t mail, int budget);
  int receive_more(Peer&, std::uint64_t mail, int budget);
  bool is_taken(Peer&, Take answer);
  bool give(Peer&, std::span<const std::byte>);
  bool receive_one(Peer&, std::uint64_t mail);
  int receive_run(Peer&, std::uint64_t mail, int most);
  bool receive_longer(Peer&, std::uint64_t mail);
  bool receive_record(Peer&, std::uint64_t mail);
  bool malformed(Peer&);
  void write_bulk(Peer&, const Arrival&);
  int offer_room(int budget);
  void disarm();
  bool anything_there();
  int report();
  void finish_endings();
  bool is_same_process(const Peer&) const;

  // control.cpp, connections.cpp
  bool open_descriptors(std::string* reason);
  bool try_cma();
  void consider_check();
  void check_sockets();
  void handle(std::uint64_t tag);
  bool hurries() const;
  void serve_pending();
  bool accept_pending();
  void stop_listening();
  Connection* pending_to_drop(bool silent);
  void drop_pending();
  bool join(Connection&);
  void count_up(int change);
  bool watch_listener(bool on);
  Peer& make_peer(Rank);
  void begin_attempt(Peer&);
  void try_connect(Connection&);
  void retry_waiting();
  void step(Connection&);
  void step_handshake(Connection&);
  void decide_inbound(Connection&);
  void take(Connection&);
  void begin_exchange(Connection&);
  void step_exchange(Connection&);
  void finish_exchange(Connection&, const FdMessage&, Lent);
  void attach_memory(Connection&);
  void connection_failed(Connection&, bool local, const std::string& why);
  void drop(std::uint32_t connection);
  Connection* find(std::uint32_t connection);
  bool watch(int fd, std::uint64_t tag, bool write, bool change);
  bool watch_connection(Connection&, bool write, bool change);
  void socket_event(Peer&);
  void end(Peer&, const std::string& more);
  void disconnect(Peer&);
  void fail(Peer&, bool lost, std::string reason);
  std::string name_of(const Peer&) const;
  std::span<const std::byte> payload() const {
    return {reinterpret_cast<const std::byte*>(&payload_), sizeof payload_};
  }

  DriverContext* context_ = nullptr;
  DriverEvents* events_ = nullptr;

  // Data path.
  std::unique_ptr<std::atomic<Peer*>[]> peers_;  ///< by rank; a rank without communication costs only its pointer.
  std::vector<Peer*> active_;                    ///< peers whose ring is polled.
  std::size_t turn_ = 0;                         ///< round-robin over active_.
  bool gives_way_ = false;                       ///< a poll looks at each ring once only.
  int until_check_ = 1;                          ///< polls left before consider_check().
  bool slow_poll_due_ = false;                   ///< true if one of the next three lists may not be empty.
  std::vector<Peer*> starved_, news_, ending_;
  int whole_rings_ = 0;  ///< peers to which all of the ring has memory.
  struct Reservation {
    Peer* peer = nullptr;
    bool in_line = false;
  } reserved_;

  // Sleep.
  SleepPage* sleep_page_ = nullptr;
  std::uint32_t sleeps_ = 0;
  bool membarrier_ = false;

  // Control.
  net::Party party_;
  AddressForm address_;
  Nonce nonce_ = {};  ///< peers read it here, in place: see cma.hpp
  HandshakePayload payload_;
  bool cma_ = false;
  FreshPages fresh_pages_;
  BroadcastSegment segment_;
  Mapping sleep_mapping_;  ///< and the broadcast segment
  net::UniqueFd epoll_, listener_, sleep_memfd_;
  net::AcceptLimiter limiter_;
  net::AcceptFailures accept_failures_;
  net::Once once_;
  bool listening_ = false;         ///< the listener is behind the limiter
  Rank up_ = 0;                    ///< number of peers that are up
  std::size_t pending_count_ = 0;  ///< number of connections that are pending
  std::vector<std::unique_ptr<Peer>> all_peers_;
  std::map<std::uint32_t, std::unique_ptr<Connection>> connections_;  ///< few, and only during set-up
  std::uint32_t last_connection_ = 0;
  int waiting_ = 0;    ///< connections in phase waiting
  int planned_ = 1;    ///< polls from one consider_check() to the next
  int unchecked_ = 0;  ///< polls since the last check of the sockets
  std::uint64_t last_check_ = 0, last_socket_check_ = 0;
};

}  // namespace canele::drivers::shm
