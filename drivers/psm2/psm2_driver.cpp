// SPDX-License-Identifier: BSD-3-Clause
//
// Opening, sending, closing. See psm2_driver.hpp.
//
// Through shared memory psm2_mq_isend2() has copied a packet when it returns; over hardware it may not have. Both cases
// take one path here: if the operation is not complete at once, its token comes back later.
#include "drivers/psm2/psm2_driver.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/psm2/psm2.hpp"
#include "drivers/psm2/stale_shm.hpp"

namespace canele::drivers {
namespace psm2 {
namespace {

constexpr std::size_t one_slot = 8000;         ///< fits a data slot of libpsm2's queue in shared memory.
constexpr std::size_t largest_bulk = 1 << 20;  ///< measured: larger pieces gain nothing (README.md).
constexpr std::size_t most_copies = 16 << 20;  ///< bytes of bulk data in several pieces that are copied ahead.
constexpr std::size_t most_buffers = 64;
constexpr std::uint32_t queue_share = 224;  ///< of 256 slots with data in a process's queue; the rest is for control
constexpr std::uint32_t largest_unacked_limit = 32;
constexpr std::uint64_t longest_nap_ns = 1'000'000, longest_nap_to_connect_ns = 200'000;
constexpr int close_patience = 1000;   ///< milliseconds
constexpr int goodbye_patience = 100;  ///< milliseconds for each peer

/// Reads a setting that is "auto" or `other`; *differs: it is `other`.
bool read_choice(DriverContext& context, const char* name, const char* other, bool* differs, std::string* reason) {
  const std::string text = context.setting(name, "auto");
  *differs = text == other;
  if (*differs || text == "auto") return true;
  *reason = std::string("CANELE_") + name + " is \"" + text + "\"; expected: auto or " + other;
  return false;
}

/// Copies the pieces to the start of `into`, which has room for them; libpsm2 sends from one contiguous block.
const std::byte* gather(const iovec* pieces, int count, Buffer& into) {
  std::byte* to = into.data();
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len > 0) std::memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
    to += pieces[i].iov_len;
  }
  return into.data();
}

}  // namespace

Status Psm2Driver::open_impl(DriverContext& context, Address* address, std::string* reason) {
  context_ = &context;
  self_ = net::Party(context, "psm2");
  if (!read_settings(reason) || !endpoint_.open(context.job, reason)) return Status::failed;
  coordinator_ = std::make_unique<ConnectCoordinator>(context, self_, endpoint_);
  if (!coordinator_->open(reason)) return Status::failed;
  if (endpoint_.memory_only() && coordinates_ &&
      !alarm_.open({coordinator_->letter_box(), coordinator_->bell()}, reason)) {
    return Status::failed;
  }
  probe_ = context.random() ^ endpoint_.id();
  own_ = {endpoint_.id(), net::host_id(),          context.incarnation,         ::getpid(),
          ::geteuid(),    endpoint_.memory_only(), coordinator_->control_name()};
  *address = pack(own_);
  const auto size = static_cast<std::size_t>(context.size);
  peers_.resize(size);
  known_.resize(size, Known::nothing);
  early_.resize(size, false);
  local_unacked_limit_ = std::clamp(queue_share / static_cast<std::uint32_t>(std::max<std::size_t>(size - 1, 1)), 2u,
                                    largest_unacked_limit);
  fill_capabilities();
  open_ = true;
  return Status::ok;
}

bool Psm2Driver::read_settings(std::string* reason) {
  bool no_coordinator = false, no_cma = false, no_eager = false;
  if (!read_choice(*context_, "PSM2_MEETING", "off", &no_coordinator, reason) ||
      !read_choice(*context_, "PSM2_CMA", "off", &no_cma, reason) ||
      !read_choice(*context_, "PSM2_EAGER", "off", &no_eager, reason) ||
      !read_choice(*context_, "PSM2_FETCH", "on", &fetches_, reason)) {
    return false;
  }
  coordinates_ = !no_coordinator;
  checks_cma_ = !no_cma;
  copies_short_ = !no_eager;
  fetches_ = fetches_ || no_eager;
  return true;
}

void Psm2Driver::fill_capabilities() {
  capabilities_.name = "psm2";
  capabilities_.max_packet = std::min(one_slot, endpoint_.eager_limit());
  capabilities_.max_inline = 1024;
  capabilities_.bulk_stream = true;
  capabilities_.max_bulk = fetches_ || !endpoint_.memory_only() ? largest_bulk : capabilities_.max_packet;
  // libpsm2 has no descriptor to sleep on. Local senders ring; a peer that connected without the coordinator does not
  // know that it has to.
  capabilities_.wake_up = alarm_.descriptor() >= 0 ? WakeUp::descriptor : WakeUp::none;
  capabilities_.reaches_local = true;
  capabilities_.reaches_remote = !endpoint_.memory_only();
  // A process of this host is watched; no report comes of the death of a process on another host.
  capabilities_.detects_failure = endpoint_.memory_only();
  capabilities_.max_instances = 1;
  capabilities_.latency_ns = 1000;
  capabilities_.bandwidth = 8.0;
}

/// Returns the peer, if a message can go to it now. Else returns null, and the answer in *otherwise.
Peer* Psm2Driver::sendable(Rank rank, Status* otherwise) {
  const auto index = static_cast<std::size_t>(rank);
  assert(rank >= 0 && index < peers_.size());
  Peer* const peer = peers_[index].get();
  *otherwise = known_[index] == Known::failed ? Status::failed : Status::full;
  if (peer == nullptr || peer->state != Peer::State::up) {
    early_[index] = true;
    return nullptr;
  }
  if (peer->dead || peer->left || !peer->fault.empty()) return nullptr;  // failed() follows, no ready()
  if (peer->has_room()) return peer;
  owe_ready(*peer);
  return nullptr;
}

Status Psm2Driver::owe_ready(Peer& peer) {
  if (!peer.owes_ready) owed_.push_back(peer.rank);
  peer.owes_ready = true;
  return Status::full;
}

Buffer Psm2Driver::take_buffer() {
  if (buffers_.empty()) return Buffer(std::max<std::size_t>(capabilities_.max_packet, 512));
  Buffer taken = std::move(buffers_.back());
  buffers_.pop_back();
  return taken;
}

Operation& Psm2Driver::start_operation(Peer& peer, bool sends) {
  if (spare_.empty()) spare_.emplace_back();
  running_.splice(running_.begin(), spare_, spare_.begin());
  Operation& made = running_.front();
  made.peer = &peer;
  made.sends = sends;
  made.finished = false;
  made.token = nullptr;
  made.limit_share = 0;
  made.self = running_.begin();
  return made;
}

void Psm2Driver::end_operation(Operation& operation) {
  copies_ -= operation.limit_share;
  if (operation.limit_share == 0 && operation.copy.size() == std::max<std::size_t>(capabilities_.max_packet, 512) &&
      buffers_.size() < most_buffers) {
    buffers_.push_back(std::move(operation.copy));
  }
  operation.copy = Buffer();
  operation.peer = nullptr;
  spare_.splice(spare_.begin(), running_, operation.self);
}

/// Enters the peer's queue, before anything is sent through shared memory. False: not now; the caller must not wait for
/// it instead.
bool Psm2Driver::acquire_queue(Peer& peer) { return !peer.lease_page || peer.lease_page.acquire(own_.pid); }
void Psm2Driver::release_queue(Peer& peer) {
  if (!peer.lease_page) return;
  peer.lease_page.release();
  peer.lease_page.ring();
}

/// Hands a message to libpsm2, between acquire_queue() and release_queue(). An operation that is not complete at once
/// ends in reap().
Status Psm2Driver::post(Peer& peer, Kind kind, const void* bytes, std::size_t size, Operation& operation) {
  const bool slots = peer.local && size > bulk_head_size && size <= endpoint_.eager_limit();
  const bool offers = slots && !copies_short_ && kind != Kind::handshake;
  const bool began = kind == Kind::handshake && peer.handshake->is_initiator();
  psm2_mq_tag_t tag = make_tag(kind, peer.taken, (began ? flag_began : 0) | (offers ? flag_offered : 0));
  psm2_mq_req_t request = nullptr;
  peer.told = peer.taken;
  const psm2_error_t error =
      psm2_mq_isend2(endpoint_.queue(), peer.address, offers ? PSM2_MQ_FLAG_SENDSYNC : 0, &tag,
                     const_cast<void*>(bytes), static_cast<std::uint32_t>(size), &operation, &request);
  if (error != PSM2_OK) {
    peer.fault = std::string("psm2_mq_isend2: ") + psm2_error_get_string(error);
    make_busy(peer);
    end_operation(operation);
    return Status::full;
  }
  if (!test_completion(request, operation)) return operation.token != nullptr ? Status::pending : Status::ok;
  end_operation(operation);
  return Status::ok;
}

/// Sends a message of the driver itself. These messages are outside the unacked limit, and few.
void Psm2Driver::post_small(Peer& peer, Kind kind, const void* bytes, std::size_t size) {
  Operation& operation = start_operation(peer, true);
  if (size > 0) {
    operation.copy = take_buffer();
    std::memcpy(operation.copy.data(), bytes, size);
  }
  post(peer, kind, operation.copy.data(), size, operation);
}

Status Psm2Driver::send_inline_impl(Rank rank, const void* head, std::size_t head_size, const void* body,
                                    std::size_t body_size) {
  const iovec pieces[2] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
  return send_packet_impl(rank, pieces, 2, head_size + body_size, nullptr);
}

Status Psm2Driver::send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t size, Token token) {
  Status otherwise;
  Peer* const peer = sendable(rank, &otherwise);
  if (peer == nullptr) return otherwise;
  if (!acquire_queue(*peer)) return owe_ready(*peer);
  Operation& operation = start_operation(*peer, true);
  const void* bytes = pieces[0].iov_base;
  if (count > 1 || token == nullptr) {
    operation.copy = take_buffer();
    bytes = gather(pieces, count, operation.copy);
  } else {
    operation.token = token;
  }
  const Status status = post(*peer, Kind::packet, bytes, size, operation);
  release_queue(*peer);
  if (status != Status::full) ++peer->sent;
  return status;
}

Status Psm2Driver::bulk_send_impl(Rank rank, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces,
                                  int count, std::size_t size, Token token) {
  Status otherwise;
  Peer* const peer = sendable(rank, &otherwise);
  if (peer == nullptr) return otherwise;
  if (size > capabilities_.max_bulk) return Status::failed;
  if (count > 1 && copies_ > 0 && copies_ + size > most_copies) return owe_ready(*peer);
  if (!acquire_queue(*peer)) return owe_ready(*peer);
  std::byte head[bulk_head_size];
  pack({transfer_id, offset, size}, head);
  post_small(*peer, Kind::bulk_head, head, sizeof head);
  if (!peer->fault.empty()) return release_queue(*peer), Status::full;
  Operation& operation = start_operation(*peer, true);
  const void* bytes = pieces[0].iov_base;
  if (count > 1) {
    operation.copy.resize(size);
    operation.limit_share = size;
    copies_ += size;
    bytes = gather(pieces, count, operation.copy);
  } else {
    operation.token = token;
  }
  const Status status = post(*peer, Kind::bulk_data, bytes, size, operation);
  release_queue(*peer);
  if (status != Status::full) ++peer->sent;
  return status;
}

bool Psm2Driver::arm_impl(bool on) {
  if (alarm_.descriptor() < 0) return true;
  SenderLeasePage& lease_page = coordinator_->lease_page();
  if (!on) {
    lease_page.wake();
    alarm_.clear();
    woken_ = true;
    return true;
  }
  lease_page.sleep();
  if (deaths_ || has_news() || alarm_.is_due()) {
    lease_page.wake();
    woken_ = true;
    return false;
  }
  if (needs_timer()) {
    alarm_.set(nap_ns_);
    nap_ns_ = std::min(2 * nap_ns_, coordinator_->idle() ? longest_nap_ns : longest_nap_to_connect_ns);
  }
  return true;
}

/// Returns true if poll() would report something.
bool Psm2Driver::has_news() const {
  psm2_mq_tag_t any = {};
  psm2_mq_req_t request = nullptr;
  psm2_mq_status2_t status;
  const auto is_kept = [](const Peer* peer) {  // the engine has deferred it
    if (peer->inbox.empty() || peer->inbox.front().receiving == nullptr) return false;
    return peer->inbox.front().receiving->finished;
  };
  if (std::any_of(busy_.begin(), busy_.end(), is_kept)) return true;
  if (psm2_mq_iprobe2(endpoint_.queue(), PSM2_MQ_ANY_ADDR, &any, &any, &status) == PSM2_OK) return true;
  return !running_.empty() && psm2_mq_ipeek2(endpoint_.queue(), &request, nullptr) == PSM2_OK;
}

/// Returns true if something may happen for which no process rings.
bool Psm2Driver::needs_timer() const {
  if (!coordinator_->idle() || !attempts_.empty() || !unauthenticated_.empty()) return true;
  if (!running_.empty() || !busy_.empty() || copies_ > 0) return true;
  // A sender without room is told in a message; a sender that found another one in the queue is not.
  const auto may_go = [this](Rank rank) {
    const auto& peer = peers_[static_cast<std::size_t>(rank)];
    return peer != nullptr && peer->has_room();
  };
  return std::any_of(owed_.begin(), owed_.end(), may_go);
}

/// Lets peers fetch what was offered to them, while they live and for a second at most.
void Psm2Driver::flush() {
  const auto waits = [](const Operation& operation) {
    return operation.sends && operation.peer != nullptr && !operation.peer->dead && !operation.peer->left;
  };
  for (int i = 0; i < close_patience && std::any_of(running_.begin(), running_.end(), waits); ++i) {
    psm2_mq_req_t request = nullptr;
    while (psm2_mq_ipeek2(endpoint_.queue(), &request, nullptr) == PSM2_OK) {
      psm2_mq_status2_t status;
      psm2_mq_test2(&request, &status);
      auto* const operation = static_cast<Operation*>(status.context);
      if (operation != nullptr && operation->sends) end_operation(*operation);
    }
    check_processes();
    ::poll(nullptr, 0, 1);
  }
}

void Psm2Driver::send_goodbye(Peer& peer) {
  for (int i = 0; i < goodbye_patience; ++i) {
    if (acquire_queue(peer)) {
      post_small(peer, Kind::bye, nullptr, 0);
      return release_queue(peer);
    }
    ::poll(nullptr, 0, 1);  // another process sends; it may need this core
  }
}

void Psm2Driver::close_impl() {
  if (!open_) return;
  open_ = false;
  flush();
  for (const auto& peer : peers_) {
    if (peer != nullptr && peer->state == Peer::State::up && !peer->dead && !peer->left) {
      send_goodbye(*peer);
    }
  }
  alarm_.close();
  coordinator_->close();
  endpoint_.close();
  remove_stale_shm();  // of ranks that were killed
  // Only here: libpsm2 knew the addresses of these.
  running_.clear();
  peers_.clear();
  unauthenticated_.clear();
  busy_.clear();
}

}  // namespace psm2

const DriverFactory psm2_factory = {contract_version, "psm2", "Omni-Path by libpsm2, to ranks of this and other hosts",
                                    []() -> std::unique_ptr<Driver> { return std::make_unique<psm2::Psm2Driver>(); },
                                    []() { return psm2::why_not_here(); }};

CANELE_DRIVER_MODULE(psm2_factory)

}  // namespace canele::drivers
