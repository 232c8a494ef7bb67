// SPDX-License-Identifier: BSD-3-Clause
//
// OfiDriver: the driver contract over one reliable-datagram endpoint of libfabric.
//
// Made by ofi_factory; drivers/driver.hpp says how it is called. The engine serialises, so one thread at a time is in
// it.
//
//   OfiDriver ──owns──▶ Endpoint, SendPool, ReceiveBuffers, Copies, Keepalives
//             └─owns──▶ Link per rank that was ever talked to
//
//   stuck_ stalled_ owing_ crediting_ handshaking_ suspected_ doomed_ failing_: links with something to do, each marked
//   in the link
//
// What the provider does not take (-FI_EAGAIN) is copied and waits here. So `full` has two causes only, both in this
// driver: the peer's limit is used up, or all buffers are. ready() is therefore never called in vain.
//
// Rejected: one libfabric context per message of the engine. As short data is copied, the driver holds none of the
// engine's memory, except under rma().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/ofi/buffers.hpp"
#include "drivers/ofi/copies.hpp"
#include "drivers/ofi/endpoint.hpp"
#include "drivers/ofi/keepalive.hpp"
#include "drivers/ofi/link.hpp"
#include "drivers/ofi/wire.hpp"

namespace canele::drivers::ofi {

inline constexpr int polls_per_check = 64;  ///< polls between two checks of silent peers

class OfiDriver final : public Driver {
 public:
  ~OfiDriver() override = default;

 private:
  Status open_impl(DriverContext& context, Address* address, std::string* reason) override;
  Status connect_impl(Rank peer, std::span<const std::byte> address) override;
  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override;
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override;
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override;
  Status register_memory_impl(Rank peer, RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) override;
  void deregister_impl(std::uint64_t handle) override;
  Status rma_impl(Rank peer, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces,
                  int count, std::size_t size, Token token) override;
  int poll_impl(int budget) override;
  int descriptor_impl() const override;
  bool arm_impl(bool on) override;
  void close_impl() override;

  // ofi_driver.cpp
  void fill_capabilities();
  bool open_keepalives(std::string* reason);
  Link& link_to(Rank peer);
  Link* link_of(Rank peer) const;
  void ask_launcher();
  void fail(Link& link, bool lost, const std::string& why, bool tell_peer);
  void forget_waiting(Link& link);
  std::uint16_t own_port() const { return keepalives_ ? keepalives_->port() : std::uint16_t{0}; }

  // send.cpp
  Status send_message(Rank peer, Kind kind, std::span<const std::byte> prefix, const iovec* pieces, int count,
                      std::size_t size);
  Status full(Link& link);
  bool inject(fi_addr_t to, std::span<const std::byte> message, int* error);
  void transmit(Link& link, SendBuffer* buffer);
  bool submit(SendBuffer* buffer, int* error);
  bool send_control(Link& link, Kind kind);
  void send_handshake(Link& link);
  void push_handshakes();
  void reject_unauthenticated(const Hello& hello, Rejection why);
  void reject_peer(Link& link, const Hello& hello, Rejection why);
  void queue_rejection(fi_addr_t to, const Hello& hello, Rejection why);
  void push_stuck();
  void push_rejections();
  void give_credit();
  void pay_ready();
  void sent(SendBuffer* buffer, int error);

  // handshake.cpp
  void on_handshake(const Head& head, std::span<const std::byte> bytes);
  void on_hello(std::span<const std::byte> bytes);
  void answer(Link& link, const Hello& hello, std::span<const std::byte> bytes);
  void on_challenge(Link& link, std::span<const std::byte> bytes);
  void on_rejection(Link& link, std::span<const std::byte> bytes);
  void set_up(Link& link);

  // suspicion.cpp
  static bool owes_next_step(const Link& link);
  void suspect(Link& link);
  void check_suspects();
  void recheck(Link& link, std::uint64_t now);
  void check_keepalives();
  void doom(Link& link);
  void check_doomed();

  // poll.cpp
  void read_completions(int* budget);
  void read_error(int* budget);
  void on_completion(const fi_cq_data_entry& entry, int* budget);
  void arrived(std::span<const std::byte> bytes, int* budget);
  void on_message(Link& link, const Head& head, std::span<const std::byte> body, int* budget);
  void defer(Link& link, const Head& head, std::span<const std::byte> body);
  bool deliver(Link& link, Kind kind, std::span<const std::byte> body, int* budget);
  bool write_bulk(Link& link, std::span<const std::byte> body);
  void advance(Link& link);
  void deliver_deferred(Link& link, int* budget);
  void present_stalled(int* budget);
  void report_copies();
  void report_failures();
  void broken(const std::string& why);

  DriverContext* context_ = nullptr;
  Secret secret_ = {};
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<SendPool> pool_;
  std::unique_ptr<ReceiveBuffers> receive_;
  std::unique_ptr<Copies> copies_;
  std::unique_ptr<Keepalives> keepalives_;    ///< empty: the provider's names do not support them
  std::vector<std::unique_ptr<Link>> links_;  ///< by rank
  std::vector<Link*> stuck_, stalled_, owing_, crediting_, handshaking_, suspected_, doomed_, failing_;
  std::deque<SendBuffer*> rejections_;  ///< to unauthenticated peers, not taken by the provider yet
  std::map<std::vector<std::byte>, fi_addr_t> unauthenticated_;  ///< names that have been answered
  std::uint64_t dropped_ = 0;                                    ///< messages of unauthenticated peers
  std::uint64_t host_id_ = 0;
  std::size_t inject_limit_ = 0, longest_ = 0;
  int polls_since_suspect_check_ = 0, polls_since_peer_check_ = 0;
  int silence_s_ = 0;
  bool shares_memory_ = false;  ///< see deferred_close.hpp
  bool probes_ = false;         ///< the provider's names can be probed (liveness_probe.hpp)
  int reported_ = 0;            ///< events during this poll()
  bool closing_ = false;        ///< no callbacks
};

}  // namespace canele::drivers::ofi
