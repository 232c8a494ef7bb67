// SPDX-License-Identifier: BSD-3-Clause
//
// SimDriver: memory that peers read and write by themselves. See sim_driver.hpp.
//
// A copy takes time, in which its caller may lose its core and either end may die. If a living process deregisters
// memory during a copy, it breaks the contract, and the fabric reports it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "drivers/sim/sim_driver.hpp"

namespace canele::drivers::sim {
namespace {

struct Cursor {
  std::vector<iovec> pieces;
  void skip(std::size_t bytes) {
    while (bytes > 0 && !pieces.empty()) {
      iovec& first = pieces.front();
      const std::size_t part = std::min(bytes, first.iov_len);
      first.iov_base = static_cast<char*>(first.iov_base) + part;
      first.iov_len -= part;
      bytes -= part;
      if (first.iov_len == 0) pieces.erase(pieces.begin());
    }
  }
};

/// Moves `size` bytes. Returns false if one of the two is too short.
bool move_bytes(Cursor& from, Cursor& to, std::size_t size) {
  while (size > 0) {
    if (from.pieces.empty() || to.pieces.empty()) return false;
    const std::size_t part = std::min({size, from.pieces.front().iov_len, to.pieces.front().iov_len});
    std::memmove(to.pieces.front().iov_base, from.pieces.front().iov_base, part);
    from.skip(part);
    to.skip(part);
    size -= part;
  }
  return true;
}

/// Replaces the pieces of other processes' memory by one piece, a copy of them.
void put_in_segment(Region* region) {
  for (const iovec& piece : region->pieces) {
    const auto* const from = static_cast<const std::byte*>(piece.iov_base);
    region->segment.insert(region->segment.end(), from, from + piece.iov_len);
  }
  region->pieces = {{region->segment.data(), region->segment.size()}};
}

}  // namespace

Status SimDriver::register_memory_impl(Rank peer, RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) {
  breathe(has_memory() ? 20 : 1000);
  if (fabric_->strikes(Fault::registration, fabric_->rates.registration)) return Status::failed;
  Region region{{pieces, pieces + count}, op};
  if (peer == all_peers) {
    put_in_segment(&region);
    rkey->copied = region.segment.data();
  }
  const RegionName what = {fabric_->add_region(rank(), std::move(region)), rank()};
  rkey->size = sizeof what;
  std::memcpy(rkey->bytes, &what, sizeof what);
  // With shared memory only a registration for `all_peers` must be undone.
  rkey->handle = has_memory() && peer != all_peers ? 0 : what.region;
  return Status::ok;
}

void SimDriver::deregister_impl(std::uint64_t handle) { fabric_->drop_region(rank(), handle); }

Status SimDriver::rma_impl(Rank peer, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
                           const iovec* pieces, int count, std::size_t size, Token token) {
  RegionName what;
  if (rkey.size() != sizeof what) return Status::failed;
  std::memcpy(&what, rkey.data(), sizeof what);
  if (what.rank != peer) return Status::failed;
  if (capabilities_.rma_any_thread) return copy_now(peer, op, what, offset, pieces, count, size);
  return copy_later(peer, op, what, offset, pieces, count, size, token);
}

/// Copies in the caller's thread, part by part.
Status SimDriver::copy_now(Rank peer, RmaOp op, const RegionName& what, std::uint64_t offset, const iovec* pieces,
                           int count, std::size_t size) {
  Cursor ours{{pieces, pieces + count}};
  for (std::size_t done = 0; done < size;) {
    const std::size_t part = std::min<std::size_t>(size - done, 16 * 1024);
    breathe(200 + fabric_->wire_time(part));
    Region* const region = fabric_->region(peer, what.region);
    if (region == nullptr || region->op != op) return Status::failed;
    Cursor theirs{region->pieces};
    theirs.skip(offset + done);
    if (fabric_->strikes(Fault::copy_failed, fabric_->rates.copy_failed)) return Status::failed;
    const bool fits = op == RmaOp::get ? move_bytes(theirs, ours, part) : move_bytes(ours, theirs, part);
    if (!fits) return Status::failed;
    done += part;
  }
  return Status::ok;
}

/// Returns when a copy is complete: at any time from the earliest possible one to three times that. In a measured
/// fabric: when the ports have passed it on.
std::uint64_t SimDriver::arrival_of_copy(Rank peer, RmaOp op, std::size_t size) {
  Fabric& fabric = *fabric_;
  const std::uint64_t latency = fabric.options().model.latency_ns;
  if (fabric.options().measured) {
    return op == RmaOp::get ? fabric.pass(peer, rank(), size) + latency : fabric.pass(rank(), peer, size) + latency;
  }
  const std::uint64_t there = latency + fabric.wire_time(size);
  return fabric.now() + there + fabric.dice.under(2 * there);
}

/// Copies by the simulated network card: memory is read when the frame passes it, and done() follows.
Status SimDriver::copy_later(Rank peer, RmaOp op, const RegionName& what, std::uint64_t offset, const iovec* pieces,
                             int count, std::size_t size, Token token) {
  breathe(300);
  Link& link = link_to(peer);
  if (link.state == State::failed) return Status::failed;
  if (link.state != State::up || fabric_->strikes(Fault::copy_full, fabric_->rates.copy_full)) {
    link.owes_ready = true;
    fabric_->world.timeline.after(1 + fabric_->dice.under(fabric_->rates.longest_delay_ns),
                                  [fabric = fabric_, own = rank(), self = incarnation(), peer] {
                                    SimDriver* const driver = fabric->driver_of(own);
                                    if (driver != nullptr && driver->incarnation() == self) driver->check_ready(peer);
                                  });
    return Status::full;
  }
  if (Region* const region = fabric_->region(peer, what.region); region != nullptr) {
    region->readers.emplace_back(rank(), incarnation());
  }
  fabric_->world.timeline.at(
      arrival_of_copy(peer, op, size), [fabric = fabric_, own = rank(), self = incarnation(), peer, op, what, offset,
                                        size, token, mine = Cursor{{pieces, pieces + count}}] {
        Region* const region = fabric->region(peer, what.region);
        if (region != nullptr) {
          auto& readers = region->readers;
          readers.erase(std::find(readers.begin(), readers.end(), std::pair(own, self)));
        }
        SimDriver* const driver = fabric->driver_of(own);
        if (driver == nullptr || driver->incarnation() != self || driver->link_to(peer).state != State::up) return;
        if (fabric->is_cut(own, peer))
          return;  // failed() will come; the peer may know already and use its memory again
        bool fits = region != nullptr && region->op == op;
        if (fits) {
          Cursor ours = mine, theirs{region->pieces};
          theirs.skip(offset);
          fits = op == RmaOp::get ? move_bytes(theirs, ours, size) : move_bytes(ours, theirs, size);
        }
        driver->owe({Due::Kind::done, peer, {}, token, fits ? Status::ok : Status::failed});
      });
  return Status::pending;
}

}  // namespace canele::drivers::sim
