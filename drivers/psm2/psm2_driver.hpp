// SPDX-License-Identifier: BSD-3-Clause
//
// Psm2Driver: the driver contract over libpsm2's matched queues (Omni-Path, or its shared memory).
//
// Made by psm2_factory; drivers/driver.hpp says how it is called. The engine serialises, so one thread at a time is in
// it.
//
//   Psm2Driver ──owns──▶ Endpoint   libpsm2
//              ├─owns──▶ ConnectCoordinator    until two processes of a host can send to each other
//              ├─owns──▶ unauthenticated_ they can send, and have proven nothing; at most 64
//              ├─owns──▶ peers_     by rank; libpsm2 keeps a pointer to the Peer beside its own address of it
//              └─owns──▶ running_   operations that libpsm2 has not finished
//
// psm2_mq_improbe2() finds every arrival without a tag, so messages come in the order in which libpsm2 received them.
// Packets and bulk data of a peer are thus in order without numbers. Bulk data is matched first and received later: the
// engine says where it goes, then libpsm2 brings it there.
//
// Rejected: receives posted in advance for packets (one copy less). Bulk data and packets would then arrive by two
// ways, and need numbers to be put in order. Rejected: active messages. They use the slots and copies of tagged
// messages underneath.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/net/handshake.hpp"
#include "drivers/psm2/alarm.hpp"
#include "drivers/psm2/connect_coordinator.hpp"
#include "drivers/psm2/endpoint.hpp"
#include "drivers/psm2/peer.hpp"
#include "drivers/psm2/wire.hpp"

namespace canele::drivers::psm2 {

class Psm2Driver final : public Driver, private ConnectCoordinator::Sink {
 public:
  ~Psm2Driver() override { close_impl(); }

 private:
  /// A peer that is reached without the coordinator: on another host.
  struct Attempt {
    Whereabouts where;
    int tries = 0;
  };
  enum class Known : std::uint8_t { nothing, failed };

  Status open_impl(DriverContext& context, Address* address, std::string* reason) override;
  Status connect_impl(Rank peer, std::span<const std::byte> address) override;
  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override;
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override;
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override;
  int poll_impl(int budget) override;
  int descriptor_impl() const override { return alarm_.descriptor(); }
  bool arm_impl(bool on) override;
  void close_impl() override;

  // Opening and sending (psm2_driver.cpp).
  bool read_settings(std::string* reason);
  void fill_capabilities();
  Peer* sendable(Rank rank, Status* otherwise);
  Status post(Peer& peer, Kind kind, const void* bytes, std::size_t size, Operation& operation);
  Status owe_ready(Peer& peer);
  bool acquire_queue(Peer& peer);
  void release_queue(Peer& peer);
  void send_goodbye(Peer& peer);
  void post_small(Peer& peer, Kind kind, const void* bytes, std::size_t size);
  Operation& start_operation(Peer& peer, bool sends);
  void end_operation(Operation& operation);
  Buffer take_buffer();
  void flush();
  bool has_news() const;
  bool needs_timer() const;

  // Connecting (connections.cpp).
  void reached(Reached&& peer) override;
  void missed(Rank rank, bool lost, const std::string& reason) override;
  bool knows(Rank rank) const override;
  int connect_some();
  void attempt(Rank rank, Attempt& attempt, bool* done);
  Peer& add_unauthenticated(psm2_epaddr_t address);
  Peer* on_first_message(psm2_epaddr_t address);
  bool takes_part(Peer& peer, bool began);
  void on_handshake(Peer& peer, std::span<const std::byte> bytes);
  void shake(Peer& peer);
  void on_identified(Peer& peer);
  void accept(Peer& peer);
  std::array<std::byte, Terms::size> own_terms(const Peer& peer) const;
  bool take_terms(Peer& peer, std::string* problem);
  void come_up(Peer& peer);
  void break_off(Peer& peer, const std::string& reason);
  void fail(Peer& peer, bool lost, const std::string& reason);
  void report_failed(Rank rank, bool lost, const std::string& reason);
  void forget(Peer& peer);
  void sweep();
  void drop_old_unauthenticated();
  void check_processes();
  void ask_launcher();
  void check_queues();
  bool can_read(const Peer& peer, int* error) const;

  // Receiving (receive.cpp).
  bool receive_some(int budget);
  void on_message(psm2_mq_req_t request, const psm2_mq_status2_t& status);
  void take_note(Peer& peer, std::uint32_t taken);
  const char* wrong_with(const Peer& peer, const Message& message) const;
  void discard(psm2_mq_req_t request);
  bool present(Peer& peer, Message& message);
  bool is_lost(const Peer& peer) const;
  bool has_arrived(Peer& peer, Message& message);
  bool present_packet(Peer& peer, Message& message);
  bool start_bulk(Peer& peer, Message& message);
  bool finish_bulk(Peer& peer);
  void put_down(Peer& peer, IncomingBulk& incoming);
  bool test_completion(psm2_mq_req_t request, Operation& operation);
  void make_busy(Peer& peer);
  void go_on();
  void drain(Peer& peer);
  void reap();
  void count_taken(Peer& peer);
  bool owes_note(const Peer& peer) const;
  void acknowledge(Peer& peer);
  void say_ready();
  void bury(bool quiet);

  DriverContext* context_ = nullptr;
  net::Party self_;
  Endpoint endpoint_;
  std::unique_ptr<ConnectCoordinator> coordinator_;
  Alarm alarm_;  ///< open if everything that arrives can wake the engine
  Whereabouts own_;
  bool coordinates_ = true;   ///< setting PSM2_MEETING
  bool checks_cma_ = true;    ///< setting PSM2_CMA
  bool copies_short_ = true;  ///< setting PSM2_EAGER
  bool fetches_ = false;      ///< setting PSM2_FETCH: large messages also without hardware
  bool open_ = false;
  bool damaged_ = false;  ///< a process died while it sent here: this process's queue in shared memory may be damaged
  std::uint64_t probe_ = 0;  ///< the number that peers look for
  std::uint32_t local_unacked_limit_ = 0;

  std::vector<std::unique_ptr<Peer>> peers_;
  std::list<std::unique_ptr<Peer>> unauthenticated_;
  std::vector<Known> known_;
  std::vector<bool> early_;  ///< by rank: a send came before the connection
  std::map<Rank, Attempt> attempts_;
  std::vector<Peer*> busy_;  ///< peers with an inbox or incoming bulk data.
  std::vector<Rank> owed_;   ///< peers that are owed a ready().
  bool has_closed_ = false;  ///< a peer is closed: sweep.
  bool deaths_ = false;      ///< a peer is dead and not yet reported.
  std::size_t local_peers_ = 0;
  std::size_t incoming_bytes_ = 0;  ///< bytes that local peers are bringing

  std::list<Operation> running_, spare_;
  std::vector<Buffer> buffers_;  ///< of max_packet bytes, for reuse
  std::size_t copies_ = 0;       ///< bytes of bulk data that are copied and not yet sent
  std::uint32_t polls_ = 0;
  bool woken_ = false;  ///< check everything in the next poll()
  static constexpr std::uint64_t first_nap_ns = 50'000;
  std::uint64_t nap_ns_ = first_nap_ns;  ///< the next sleep, while something may happen for which no process rings
  std::uint64_t unauthenticated_rejected_ = 0;
  int reported_ = 0;  ///< events of this poll()
};

}  // namespace canele::drivers::psm2
