// SPDX-License-Identifier: BSD-3-Clause
//
// The driver without a fabric.
#include "wire_driver.hpp"

#include <utility>

namespace canele::fuzz {
namespace {

namespace wire = comm::wire;
using drivers::Take;
using drivers::Token;

constexpr std::size_t most_pieces = 8;

/// Reads every byte, so that access to unmapped memory shows.
void read_all(const iovec* pieces, int count, Bytes* into) {
  for (int i = 0; i < count; ++i) {
    const auto* from = static_cast<const std::byte*>(pieces[i].iov_base);
    into->insert(into->end(), from, from + pieces[i].iov_len);
  }
}

void fill(const std::vector<iovec>& pieces) {
  for (const iovec& piece : pieces) std::memset(piece.iov_base, 0x5a, piece.iov_len);
}

}  // namespace

std::vector<WireDriver*>& made() {
  static std::vector<WireDriver*> all;
  return all;
}

const drivers::DriverFactory& wire_factory(Like like) {
  static const auto able = [] { return std::string(); };
  using drivers::DriverFactory;
  static const DriverFactory all[] = {
      {drivers::contract_version, "shm", "", [] { return std::unique_ptr<drivers::Driver>(new WireDriver(Like::shm)); },
       able},
      {drivers::contract_version, "tcp", "", [] { return std::unique_ptr<drivers::Driver>(new WireDriver(Like::tcp)); },
       able},
      {drivers::contract_version, "ofi", "", [] { return std::unique_ptr<drivers::Driver>(new WireDriver(Like::ofi)); },
       able}};
  return all[static_cast<std::size_t>(like)];
}

WireDriver::WireDriver(Like like) : like_(like), ours_(lines), theirs_(lines) { made().push_back(this); }

Status WireDriver::open_impl(drivers::DriverContext& context, drivers::Address* address, std::string*) {
  context_ = &context;
  capabilities_.name = like_ == Like::shm ? "shm" : like_ == Like::tcp ? "tcp" : "ofi";
  capabilities_.memory_only = like_ == Like::shm;
  capabilities_.max_packet = 4096;
  capabilities_.max_inline = like_ == Like::shm ? 56 : 0;
  capabilities_.reserves = like_ == Like::shm;
  capabilities_.bulk_stream = true;
  capabilities_.max_bulk = 16384;
  capabilities_.get = like_ != Like::tcp;
  capabilities_.put = capabilities_.rma_any_thread = like_ == Like::shm;
  capabilities_.rkey_size = 32;
  capabilities_.shared_lines = like_ == Like::shm ? lines : 0;
  capabilities_.wake_up = drivers::WakeUp::descriptor;
  capabilities_.reaches_local = capabilities_.reaches_remote = capabilities_.detects_failure = true;
  *address = drivers::Address(8);
  return Status::ok;
}

Status WireDriver::connect_impl(Rank rank, std::span<const std::byte> address) {
  FUZZ_CHECK(!address.empty() && address.size() <= 512);
  connect_now(rank);
  return Status::pending;
}

void WireDriver::connect_now(Rank rank) {
  at_poll([this, rank](drivers::DriverEvents& events) {
    if (failed_.contains(rank) || !up_.insert(rank).second) return;
    if (like_ == Like::shm) share_lines(rank, {ours_.data(), theirs_.data(), lines});
    events.connected(rank);
  });
}

void WireDriver::arrives(Rank from, Bytes packet) {
  if (packet.empty() || packet.size() > capabilities_.max_packet) return;
  at_poll([this, from, packet = std::move(packet)](drivers::DriverEvents& events) {
    if (!up_.contains(from) || has_bulk(from)) return;
    const Take take = events.packet(from, packet);
    FUZZ_CHECK(take != Take::retry);
    if (take == Take::rejected) forget(from);
  });
}

/// Returns whether bulk data is incoming. Until it is written, nothing else comes from its rank.
bool WireDriver::has_bulk(Rank from) const {
  return std::any_of(held_.begin(), held_.end(), [&](const IncomingBulk& one) { return one.from == from; });
}

WireDriver::IncomingBulk WireDriver::begin_bulk(drivers::DriverEvents& events, Rank from, std::uint64_t key,
                                                std::uint64_t offset, std::uint64_t length) {
  iovec pieces[most_pieces];
  const int count = events.bulk_destination(from, key, offset, length, pieces, most_pieces);
  FUZZ_CHECK(count >= 0 && count <= static_cast<int>(most_pieces));
  IncomingBulk incoming{from, key, offset, 0, {pieces, pieces + count}};
  for (const iovec& piece : incoming.pieces) incoming.length += piece.iov_len;
  FUZZ_CHECK(incoming.length <= length && (count == 0 || incoming.length > 0));
  return incoming;
}

void WireDriver::end_bulk(drivers::DriverEvents& events, const IncomingBulk& incoming) {
  fill(incoming.pieces);
  events.bulk_written(incoming.from, incoming.key, incoming.offset, incoming.length);
}

void WireDriver::bulk_arrives(Rank from, std::uint64_t key, std::uint64_t offset, std::uint64_t length, bool hold) {
  at_poll([=, this](drivers::DriverEvents& events) {
    if (!up_.contains(from) || length == 0 || offset + length < offset || has_bulk(from)) return;
    IncomingBulk incoming = begin_bulk(events, from, key, offset, length);
    if (incoming.pieces.empty()) return;
    if (hold) {
      held_.push_back(std::move(incoming));
    } else {
      end_bulk(events, incoming);
    }
  });
}

void WireDriver::hold_ends(std::size_t which) {
  at_poll([=, this](drivers::DriverEvents& events) {
    if (held_.empty()) return;
    const auto at = held_.begin() + static_cast<std::ptrdiff_t>(which % held_.size());
    const IncomingBulk incoming = std::move(*at);
    held_.erase(at);
    end_bulk(events, incoming);
  });
}

void WireDriver::operation_ends(std::size_t which, bool well) {
  at_poll([=, this](drivers::DriverEvents& events) {
    if (operations_.empty()) return;
    const auto at = operations_.begin() + static_cast<std::ptrdiff_t>(which % operations_.size());
    const Operation operation = std::move(*at);
    operations_.erase(at);
    const bool ok = well || !operation.copy;  // a packet that cannot be sent is the end of its peer
    Bytes read;
    if (operation.copy && ok) fill(operation.memory);
    if (!operation.copy) read_all(operation.memory.data(), static_cast<int>(operation.memory.size()), &read);
    events.done(operation.token, ok ? Status::ok : Status::failed);
  });
}

void WireDriver::room(Rank rank) {
  at_poll([=, this](drivers::DriverEvents& events) {
    if (owes_room_.erase(rank) > 0) events.ready(rank);
  });
}

void WireDriver::fails(Rank rank) {
  at_poll([=, this](drivers::DriverEvents& events) {
    if (failed_.contains(rank)) return;
    forget(rank);
    events.failed(rank, true, "the end of the input");
  });
}

/// Drops everything that is due for this rank.
void WireDriver::forget(Rank rank) {
  failed_.insert(rank);
  up_.erase(rank);
  owes_room_.erase(rank);
  std::erase_if(operations_, [&](const Operation& one) { return one.rank == rank; });
  std::erase_if(held_, [&](const IncomingBulk& one) { return one.from == rank; });
}

/// Returns how a send ends, before its packet is read.
Status WireDriver::answer(Rank rank) {
  if (failed_.contains(rank)) return Status::failed;
  if (!full && up_.contains(rank)) return Status::ok;
  owes_room_.insert(rank);
  return Status::full;
}

/// Learns the names that the engine gives away, as the peer does.
void WireDriver::sent(std::span<const std::byte> packet) {
  while (!packet.empty()) {
    wire::Chunk chunk;
    FUZZ_CHECK(wire::take_chunk(packet, chunk).is_ok());
    auto payload = chunk.payload;
    std::uint64_t name = 0;
    const wire::Type type = chunk.head.type;
    if (type == wire::Type::multicast_rts) {
      wire::Route route;
      FUZZ_CHECK(wire::take(payload, route) && payload.size() >= route.children * sizeof(std::uint32_t));
      payload = payload.subspan(route.children * sizeof(std::uint32_t));
    }
    const bool named = type == wire::Type::rts || type == wire::Type::multicast_rts || type == wire::Type::eager_sync ||
                       type == wire::Type::cts || type == wire::Type::multicast_cts;
    if (named) wire::take(payload, name);
    std::uint32_t flags = 0;
    if (type == wire::Type::get || type == wire::Type::atomic || type == wire::Type::accumulate)
      FUZZ_CHECK(wire::take(payload, flags));
    wire::AtomicWord word{};
    if (type == wire::Type::get || type == wire::Type::accumulate) FUZZ_CHECK(wire::take(payload, name));
    if (type == wire::Type::atomic && wire::take(payload, word)) name = word_of(word.result);
    if (type == wire::Type::rtr || type == wire::Type::shared_copy) {
      wire::Rtr rtr;
      FUZZ_CHECK(wire::take(payload, rtr) && payload.size() == rtr.rkey);
      rtrs.push_back(rtr);
      name = word_of(rtr.key);
    }
    if (name != 0) handles.push_back(name);
  }
}

Status WireDriver::send_inline_impl(Rank rank, const void* head, std::size_t head_size, const void* body,
                                    std::size_t body_size) {
  const Status status = answer(rank);
  if (status != Status::ok) return status;
  const iovec pieces[] = {{const_cast<void*>(head), head_size}, {const_cast<void*>(body), body_size}};
  Bytes packet;
  read_all(pieces, 2, &packet);
  sent(packet);
  return Status::ok;
}

Status WireDriver::send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t size, Token token) {
  const Status status = answer(rank);
  if (status != Status::ok) return status;
  Bytes packet;
  read_all(pieces, count, &packet);
  FUZZ_CHECK(packet.size() == size);
  sent(packet);
  if (like_ == Like::shm || !later) return Status::ok;
  operations_.push_back({rank, token, {pieces, pieces + count}, false});
  return Status::pending;
}

std::span<std::byte> WireDriver::reserve_impl(Rank rank, std::size_t size) {
  if (answer(rank) != Status::ok) return {};
  reserved_.assign(size, std::byte{0});
  return reserved_;
}

void WireDriver::commit_impl(Rank, std::size_t size) { sent(std::span(reserved_).first(size)); }

Status WireDriver::bulk_send_impl(Rank rank, std::uint64_t, std::uint64_t, const iovec* pieces, int count,
                                  std::size_t size, Token token) {
  const Status status = answer(rank);
  if (status != Status::ok) return status;
  Bytes packet;
  read_all(pieces, count, &packet);
  FUZZ_CHECK(packet.size() == size);
  if (like_ == Like::shm || !later) return Status::ok;
  operations_.push_back({rank, token, {pieces, pieces + count}, false});
  return Status::pending;
}

Status WireDriver::register_memory_impl(Rank, drivers::RmaOp, const iovec*, int, drivers::MemoryKey* rkey) {
  rkey->size = 16;
  std::memset(rkey->bytes, 0x11, rkey->size);
  rkey->handle = 0;
  if (like_ == Like::ofi) registrations_.insert(rkey->handle = ++last_registration_);
  return Status::ok;
}

void WireDriver::deregister_impl(std::uint64_t handle) { FUZZ_CHECK(registrations_.erase(handle) == 1); }

Status WireDriver::rma_impl(Rank rank, drivers::RmaOp op, std::span<const std::byte> rkey, std::uint64_t,
                            const iovec* pieces, int count, std::size_t size, Token token) {
  FUZZ_CHECK(!rkey.empty());
  if (copies_fail || failed_.contains(rank)) return Status::failed;
  std::vector<iovec> memory(pieces, pieces + count);
  std::size_t total = 0;
  for (const iovec& piece : memory) total += piece.iov_len;
  FUZZ_CHECK(total == size);
  if (op == drivers::RmaOp::put) {
    Bytes read;
    read_all(pieces, count, &read);
    return Status::ok;
  }
  if (like_ == Like::ofi && later) {
    operations_.push_back({rank, token, std::move(memory), true});
    return Status::pending;
  }
  if (like_ == Like::ofi && full) return answer(rank);
  fill(memory);
  return Status::ok;
}

int WireDriver::poll_impl(int) {
  int did = 0;
  while (!due_.empty()) {
    const auto what = std::move(due_.front());
    due_.pop_front();
    what(*context_->events);
    ++did;
  }
  return did;
}

void WireDriver::close_impl() {
  FUZZ_CHECK(operations_.empty());
  std::erase(made(), this);
}

}  // namespace canele::fuzz
