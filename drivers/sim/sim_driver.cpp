// SPDX-License-Identifier: BSD-3-Clause
//
// SimDriver: opening, connecting, sending, arming, closing. See sim_driver.hpp. receive.cpp has poll(), copies.cpp has
// the operations that the peer takes no part in.
//
// Back-pressure of a peer ends by an event of the timeline: ready() is never called without a cause, and never
// forgotten.
#include "drivers/sim/sim_driver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/sim/sim.hpp"

namespace canele::drivers {
namespace sim {
namespace {

struct Name {
  std::uint64_t incarnation;
  std::int64_t rank;
};

void append(std::vector<std::byte>& bytes, const void* from, std::size_t size) {
  const auto* const begin = static_cast<const std::byte*>(from);
  bytes.insert(bytes.end(), begin, begin + size);
}

}  // namespace

Status SimDriver::open_impl(DriverContext& context, Address* address, std::string* reason) {
  context_ = &context;
  fabric_ = Fabric::find(context.argument);
  if (fabric_ == nullptr) {
    *reason = "there is no simulated fabric \"" + context.argument + "\"";
    return Status::failed;
  }
  kind_ = fabric_->options().kind;
  if (!fabric_->attach(*this)) {
    *reason = "this rank is on the fabric already";
    return Status::failed;
  }
  bell_ = fabric_->world.bells.make();
  fill_capabilities();
  const Name name = {context.incarnation, context.rank};
  address->resize(sizeof name);
  std::memcpy(address->data(), &name, sizeof name);
  return Status::ok;
}

void SimDriver::fill_capabilities() {
  const FabricOptions& options = fabric_->options();
  Capabilities& all = capabilities_;
  all.name = "sim";
  all.memory_only = has_memory();
  all.max_packet = options.max_packet;
  all.max_inline = all.memory_only ? options.max_inline : 0;
  all.reserves = all.memory_only;
  all.bulk_stream = true;
  all.max_bulk = all.memory_only ? options.max_packet : std::size_t{64} * 1024;
  all.get = all.put = kind_ == Kind::memory || kind_ == Kind::rma;
  all.rma_any_thread = kind_ == Kind::memory;
  all.rma_by_hardware = kind_ == Kind::rma;
  all.max_rma = std::size_t{256} * 1024;
  if (!options.measured && context_->incarnation % 4 == 0) all.rma_min = std::size_t{64} * 1024;
  all.rma_min_is_guess = !options.measured && kind_ == Kind::memory && context_->incarnation % 4 == 1;
  if (!options.measured && kind_ == Kind::memory && context_->incarnation % 3 != 0)
    all.broadcast_segment = std::size_t{1} << 20;
  all.rkey_size = all.get ? sizeof(RegionName) : 0;
  all.shared_lines = kind_ == Kind::memory ? shared_line_count : 0;
  all.wake_up = all.memory_only ? WakeUp::doorbell : WakeUp::descriptor;
  all.reaches_local = options.local;
  all.reaches_remote = options.remote;
  all.detects_failure = kind_ != Kind::rma && kind_ != Kind::plain;
  all.latency_ns = static_cast<std::uint32_t>(options.model.latency_ns);
  all.gap_ns = static_cast<std::uint32_t>(options.model.gap_ns);
  all.bandwidth = options.model.bandwidth;
}

Status SimDriver::connect_impl(Rank peer, std::span<const std::byte> address) {
  breathe(100);
  Name name;
  if (address.size() != sizeof name) return Status::failed;
  std::memcpy(&name, address.data(), sizeof name);
  if (name.rank != peer || !fabric_->joins(rank(), peer)) return Status::failed;
  Link& link = link_to(peer);
  if (link.state == State::failed) return Status::failed;
  if (link.state != State::unknown) return Status::pending;  // the peer was first
  link.state = State::connecting;
  link.incarnation = name.incarnation;
  Frame hello;
  hello.type = Frame::Type::hello;
  post(peer, std::move(hello));
  return Status::pending;
}

void SimDriver::post(Rank peer, Frame frame) {
  frame.incarnation = incarnation();
  frame.peer_incarnation = link_to(peer).incarnation;
  fabric_->transmit(rank(), peer, std::move(frame));
}

Status SimDriver::check_room(Link& link, Rank peer, std::size_t size) {
  if (link.state == State::failed) return Status::failed;
  const bool fits = link.in_flight == 0 || link.in_flight + size <= fabric_->options().in_flight_limit;
  bool shut = link.state != State::up || !fits || link.shut_until > fabric_->now();
  if (!shut && fabric_->strikes(Fault::back_pressure, fabric_->rates.back_pressure)) {
    shut = true;
    link.shut_until = fabric_->now() + 1 + fabric_->dice.under(fabric_->rates.longest_delay_ns);
    fabric_->world.timeline.at(link.shut_until, [fabric = fabric_, own = rank(), self = incarnation(), peer] {
      SimDriver* const driver = fabric->driver_of(own);
      if (driver != nullptr && driver->incarnation() == self) driver->check_ready(peer);
    });
  }
  if (!shut) return Status::ok;
  link.owes_ready = true;
  return Status::full;
}

/// Owes ready() if there is room again.
void SimDriver::check_ready(Rank peer) {
  Link& link = link_to(peer);
  if (!link.owes_ready || link.state != State::up || link.shut_until > fabric_->now()) return;
  if (2 * link.in_flight > fabric_->options().in_flight_limit) return;
  link.owes_ready = false;
  owe({Due::Kind::ready, peer});
}

void SimDriver::owe(Due due) {
  due_.push_back(std::move(due));
  ring();
}

/// Rings the own bell, for events that come without a peer's doorbell.
void SimDriver::ring() {
  if (armed_) fabric_->world.bells.ring(bell_);
}

Status SimDriver::send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                                   std::size_t body_size) {
  const iovec pieces[2] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
  return send(peer, {}, pieces, 2, head_size + body_size, nullptr);
}

Status SimDriver::send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) {
  return send(peer, {}, pieces, count, size, token);
}

Status SimDriver::bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces,
                                 int count, std::size_t size, Token token) {
  if (size > capabilities_.max_bulk) fabric_->world.complain("a bulk piece is longer than max_bulk");
  Frame frame;
  frame.type = Frame::Type::bulk;
  frame.transfer_id = transfer_id;
  frame.offset = offset;
  return send(peer, std::move(frame), pieces, count, size, token);
}

Status SimDriver::send(Rank peer, Frame frame, const iovec* pieces, int count, std::size_t size, Token token) {
  breathe(has_memory() ? 20 : 500);
  Link& link = link_to(peer);
  const Status status = check_room(link, peer, size);
  if (status != Status::ok) return status;
  frame.charged = size;
  link.in_flight += size;
  const bool pends =
      !has_memory() && token != nullptr && fabric_->strikes(Fault::pending_send, fabric_->rates.pending_send);
  if (pends) {
    frame.unread.assign(pieces, pieces + count);
    frame.token = token;
    post(peer, std::move(frame));
    return Status::pending;
  }
  frame.bytes.reserve(size);
  for (int i = 0; i < count; ++i) append(frame.bytes, pieces[i].iov_base, pieces[i].iov_len);
  if (frame.bytes.size() != size) fabric_->world.complain("the pieces of a packet do not have the size it says");
  hand_over(peer, link, std::move(frame));
  return Status::ok;
}

/// Hands a frame over. With shared memory it arrives at once, and the peer's bell is due if the peer sleeps.
void SimDriver::hand_over(Rank peer, Link& link, Frame frame) {
  if (!has_memory()) return post(peer, std::move(frame));
  ++fabric_->frames;
  SimDriver* const receiver = fabric_->driver_of(peer);
  if (receiver == nullptr || receiver->incarnation() != link.incarnation) return;  // gone; failed() will come
  frame.incarnation = incarnation();
  if (receiver->armed_ && !std::exchange(link.rings, true)) ++wakes_due_;
  receiver->inbox_.push_back({rank(), std::move(frame)});
}

std::span<std::byte> SimDriver::reserve_impl(Rank peer, std::size_t size) {
  breathe(20);
  if (check_room(link_to(peer), peer, size) != Status::ok) return {};
  reserved_.assign(size, std::byte{0xAA});  // the ring holds old bytes
  return reserved_;
}

void SimDriver::commit_impl(Rank peer, std::size_t size) {
  if (size == 0) return;
  Frame frame;
  frame.charged = size;
  frame.bytes.assign(reserved_.begin(), reserved_.begin() + static_cast<std::ptrdiff_t>(size));
  Link& link = link_to(peer);
  link.in_flight += size;
  hand_over(peer, link, std::move(frame));
}

bool SimDriver::wants_wake_impl(Rank peer) {
  const bool wants = std::exchange(link_to(peer).rings, false);
  wakes_owed_ += wants ? 1 : 0;
  return wants;
}

void SimDriver::wake_impl(Rank peer) {
  --wakes_owed_;
  SimDriver* const sleeper = fabric_->driver_of(peer);
  if (sleeper != nullptr) sleeper->ring();
}

bool SimDriver::arm_impl(bool on) {
  breathe(10);
  if (!on) {
    armed_ = false;
    fabric_->world.bells.quiet(bell_);
    for (auto& [peer, link] : links_) link.rings = false;
    wakes_due_ = 0;
    return true;
  }
  armed_ = inbox_.empty() && due_.empty();
  return armed_;
}

void SimDriver::close_impl() {
  if (fabric_ == nullptr || fabric_->driver_of(rank()) != this) return;
  if (wakes_owed_ != 0) {
    fabric_->world.complain("rank " + std::to_string(rank()) + " was to ring for sleeping ranks, and did not " +
                            std::to_string(wakes_owed_) + " times");
  }
  for (const auto& [peer, link] : links_) {
    Frame bye;
    bye.type = Frame::Type::bye;
    fabric_->read_all_pending(rank(), peer);
    if (link.state == State::up) post(peer, std::move(bye));
  }
  fabric_->detach(*this);
}

}  // namespace sim

const DriverFactory sim_factory = {contract_version, "sim", "a simulated fabric",
                                   []() -> std::unique_ptr<Driver> { return std::make_unique<sim::SimDriver>(); },
                                   []() { return std::string(); }};

}  // namespace canele::drivers
