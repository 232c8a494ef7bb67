// SPDX-License-Identifier: BSD-3-Clause
//
// RMA. See copies.hpp.
//
// A put requests FI_DELIVERY_COMPLETE. An ordinary completion says only that the data has left, and the peer could be
// told of bytes that have not arrived.
#include "drivers/ofi/copies.hpp"

#include <algorithm>

#include "drivers/net/bytes.hpp"

namespace canele::drivers::ofi {
namespace {

constexpr std::size_t piece_size = 24, pieces_offset = 8;

}  // namespace

Copies::~Copies() = default;

Status Copies::register_memory(RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) {
  if (count < 1 || static_cast<std::size_t>(count) > most_pieces) return Status::failed;
  std::vector<Region> regions;
  std::fill_n(rkey->bytes, pieces_offset, std::byte{0});
  net::write_le(rkey->bytes, static_cast<std::uint64_t>(count), 2);
  std::byte* to = rkey->bytes + pieces_offset;
  for (int i = 0; i < count; ++i, to += piece_size) {
    const iovec& piece = pieces[i];
    int error = 0;
    regions.push_back(endpoint_.register_memory(piece.iov_base, piece.iov_len,
                                                op == RmaOp::get ? FI_REMOTE_READ : FI_REMOTE_WRITE, &error));
    if (error != 0) return Status::failed;
    const bool by_address = endpoint_.wants(FI_MR_VIRT_ADDR);
    net::write_le(to, by_address ? reinterpret_cast<std::uintptr_t>(piece.iov_base) : 0, 8);
    net::write_le(to + 8, ::fi_mr_key(regions.back().get()), 8);
    net::write_le(to + 16, piece.iov_len, 8);
  }
  rkey->size = static_cast<std::uint16_t>(to - rkey->bytes);
  if (free_handles_.empty()) {
    registrations_.emplace_back();
    free_handles_.push_back(registrations_.size());
  }
  rkey->handle = free_handles_.back();
  free_handles_.pop_back();
  registrations_[rkey->handle - 1] = std::move(regions);
  return Status::ok;
}

void Copies::deregister(std::uint64_t handle) {
  assert(handle >= 1 && handle <= registrations_.size() && !registrations_[handle - 1].empty());
  registrations_[handle - 1].clear();
  free_handles_.push_back(handle);
}

bool Copies::read_rkey(std::span<const std::byte> bytes, std::vector<Piece>* pieces) {
  if (bytes.size() < pieces_offset) return false;
  const std::size_t count = net::read_le16(bytes.data());
  if (count == 0 || count > most_pieces || bytes.size() != pieces_offset + count * piece_size) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* const from = bytes.data() + pieces_offset + i * piece_size;
    pieces->push_back({net::read_le64(from), net::read_le64(from + 8), net::read_le64(from + 16)});
    if (pieces->back().address + pieces->back().length < pieces->back().address) return false;
  }
  return true;
}

/// Makes the parts. A new part begins where one of the peer's pieces ends, and where iov_limit local pieces are used
/// up.
bool Copies::split(Copy& copy, std::vector<Piece> theirs, std::uint64_t offset, const iovec* ours, int count,
                   std::size_t size) {
  const std::size_t most = std::clamp<std::size_t>(endpoint_.info().tx_attr->iov_limit, 1, 4);
  std::size_t at = 0, taken = 0;
  int own = 0;
  while (size > 0) {
    while (at < theirs.size() && offset >= theirs[at].length) offset -= theirs[at++].length;
    if (at == theirs.size()) return false;  // beyond the end of the peer's rkey
    Part part;
    std::uint64_t room = std::min<std::uint64_t>(theirs[at].length - offset, size);
    part.theirs = {theirs[at].address + offset, 0, theirs[at].key};
    while (room > 0 && part.count < most && own < count) {
      const std::size_t n = std::min<std::uint64_t>(room, ours[own].iov_len - taken);
      if (n > 0) {
        part.ours[part.count] = {static_cast<char*>(ours[own].iov_base) + taken, n};
        if (!copy.regions.empty()) {
          part.descriptors[part.count] = ::fi_mr_desc(copy.regions[static_cast<std::size_t>(own)].get());
        }
        ++part.count;
      }
      part.theirs.len += n, offset += n, room -= n, size -= n, taken += n;
      if (taken == ours[own].iov_len) ++own, taken = 0;
    }
    if (part.count == 0) return false;  // the local pieces are shorter than `size`
    copy.parts.push_back(part);
  }
  return true;
}

Status Copies::start(Rank peer, fi_addr_t to, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
                     const iovec* pieces, int count, std::size_t size, Token token) {
  std::vector<Piece> theirs;
  if (!read_rkey(rkey, &theirs)) return Status::failed;
  if (!has_room()) return Status::full;
  auto copy = std::make_unique<Copy>();
  copy->peer = peer;
  copy->to = to;
  copy->op = op;
  copy->token = token;
  for (int i = 0; i < count && endpoint_.wants(FI_MR_LOCAL); ++i) {
    int error = 0;
    copy->regions.push_back(
        endpoint_.register_local(pieces[i].iov_base, pieces[i].iov_len, op == RmaOp::get ? FI_READ : FI_WRITE, &error));
    if (error != 0) return Status::failed;
  }
  if (!split(*copy, std::move(theirs), offset, pieces, count, size)) return Status::failed;
  for (Part& part : copy->parts) part.whole = copy.get();
  copies_.push_back(std::move(copy));
  issue(*copies_.back());
  recount();
  return Status::pending;
}

/// Issues parts until the provider takes no more. An error ends the copy once the parts in flight are complete.
void Copies::issue(Copy& copy) {
  while (copy.next < copy.parts.size() && copy.error == 0) {
    Part& part = copy.parts[copy.next];
    fi_msg_rma message = {};
    message.msg_iov = part.ours;
    message.desc = part.descriptors;
    message.iov_count = part.count;
    message.addr = copy.to;
    message.rma_iov = &part.theirs;
    message.rma_iov_count = 1;
    message.context = static_cast<Op*>(&part);
    // shm copies before it returns, but with this flag it leaves the copy to the peer, and blocks if the peer is dead.
    const std::uint64_t delivery = endpoint_.info().addr_format == FI_ADDR_STR ? 0 : FI_DELIVERY_COMPLETE;
    const auto error = copy.op == RmaOp::get ? ::fi_readmsg(endpoint_.ep(), &message, FI_COMPLETION)
                                             : ::fi_writemsg(endpoint_.ep(), &message, FI_COMPLETION | delivery);
    if (error == -FI_EAGAIN) return;
    if (error != 0) {
      copy.error = static_cast<int>(-error);
      return;
    }
    ++copy.next;
    ++copy.in_flight;
  }
}

void Copies::complete(Op& op, int error) {
  Copy& copy = *static_cast<Part&>(op).whole;
  assert(copy.in_flight > 0);
  --copy.in_flight;
  if (error != 0 && copy.error == 0) copy.error = error;
  recount();
}

void Copies::push() {
  if (unissued_ == 0) return;
  for (auto& copy : copies_) issue(*copy);
  recount();
}

void Copies::recount() {
  unissued_ = finished_ = 0;
  for (const auto& copy : copies_) {
    unissued_ += copy->next < copy->parts.size() && copy->error == 0;
    finished_ += copy->is_finished();
  }
}

bool Copies::next_finished(Finished* finished) {
  if (finished_ == 0) return false;
  const auto found = std::find_if(copies_.begin(), copies_.end(), [](const auto& copy) { return copy->is_finished(); });
  assert(found != copies_.end());
  *finished = {(*found)->peer, (*found)->token, (*found)->error};
  copies_.erase(found);
  --finished_;
  return true;
}

void Copies::abandon(Rank peer) {
  for (auto& copy : copies_) {
    if (copy->peer == peer && copy->next < copy->parts.size() && copy->error == 0) copy->error = FI_ECANCELED;
  }
  recount();
}

bool Copies::idle(Rank peer) const {
  return std::none_of(copies_.begin(), copies_.end(), [&](const auto& copy) { return copy->peer == peer; });
}

}  // namespace canele::drivers::ofi
