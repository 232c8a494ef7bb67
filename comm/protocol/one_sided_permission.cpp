// SPDX-License-Identifier: BSD-3-Clause
//
// Permissions of origins, in the order of the header's picture.
#include "comm/protocol/one_sided_permission.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "comm/link/queue.hpp"
#include "ltask/coverage.hpp"

namespace canele::comm::one_sided {
namespace {

using drivers::MemoryKey;
using drivers::RmaOp;

constexpr std::uint32_t words_in_line = sizeof(drivers::SharedLine::words) / sizeof(AccessPermit::Word);

std::uint32_t words_of(const Rail& rail) { return static_cast<std::uint32_t>(rail.permits.count) * words_in_line; }
AccessPermit permit_at(drivers::SharedLine* lines, std::uint32_t word) {
  return AccessPermit(lines[word / words_in_line].words[word % words_in_line]);
}

/// Takes a free word for a permit to that rail's peer. Returns Attachment::no_word if there is none.
std::uint32_t take_word(PermitWords& words, const Rail& rail) {
  if (!words.free.empty()) {
    const std::uint32_t word = words.free.back();
    words.free.pop_back();
    return word;
  }
  return words.next < words_of(rail) ? words.next++ : Attachment::no_word;
}

/// Registers the region with the driver. Returns whether the peer can access it.
bool register_memory(Permission& permission, const Region& region, MemoryKey& get, MemoryKey& put) {
  const iovec piece{region.base, region.length};
  const auto add = [&](RmaOp op, bool can, std::uint32_t wanted, MemoryKey& rkey) {
    drivers::Driver& driver = *permission.driver;
    if (!can || (region.access & wanted) == 0 ||
        driver.register_memory(permission.rank, op, &piece, 1, &rkey) != drivers::Status::ok) {
      rkey.size = 0;
      return false;
    }
    permission.registrations[static_cast<int>(op)] = rkey.handle;
    return true;
  };
  const drivers::Capabilities& can = permission.driver->capabilities();
  const bool gets = add(RmaOp::get, can.get, CANELE_ACCESS_READ, get);
  return add(RmaOp::put, can.put, CANELE_ACCESS_WRITE, put) || gets;
}

/// Tells the origin of its permission.
void tell(Context& context, Peer& peer, const Permission& permission, std::uint32_t word, const MemoryKey& get,
          const MemoryKey& put) CANELE_UNDER_LOCK;
void tell(Context& context, Peer& peer, const Permission& permission, std::uint32_t word, const MemoryKey& get,
          const MemoryKey& put) {
  const wire::Attached fields{word, permission.generation, get.size, put.size, 0};
  std::byte payload[sizeof fields + 2 * MemoryKey::max_size];
  std::byte* end = payload + sizeof fields;
  std::memcpy(payload, &fields, sizeof fields);
  end = std::copy_n(get.bytes, get.size, end);
  end = std::copy_n(put.bytes, put.size, end);
  link::send_control(context, peer,
                     {.type = wire::Type::attached,
                      .tag = peer.one_sided->attaches_seen,
                      .seq = permission.index,
                      .payload = {payload, static_cast<std::size_t>(end - payload)}});
}

void deregister(Permission& permission) {
  for (std::uint64_t& handle : permission.registrations) {
    if (handle != 0) permission.driver->deregister(std::exchange(handle, 0));
  }
}

}  // namespace

void permit(Context& context, Peer& peer, Region& region, std::uint32_t index) {
  const Rail* const rail = peer.rail;
  if (rail == nullptr || rail->permits.count == 0 || region.length == 0) return;
  const drivers::Capabilities& can = rail->instance->driver->capabilities();
  if (!can.memory_only || !can.rma_any_thread) return;  // registering must make no system call here
  PermitWords& words = peer.one_sided->permit_words;
  const std::uint32_t word = take_word(words, *rail);
  if (word == Attachment::no_word) {
    CANELE_COVER_RARE(one_sided_no_permit_left);
    return;
  }
  Permission permission{.rank = peer.rank,
                        .index = index,
                        .permit = permit_at(rail->permits.ours, word),
                        .generation = words.generation % AccessPermit::most_generations + 1,
                        .driver = rail->instance->driver.get()};
  MemoryKey get, put;
  if (!register_memory(permission, region, get, put)) {
    words.free.push_back(word);
    return;
  }
  words.generation = permission.generation;
  peer.one_sided->attached[index].word = word;
  region.permissions.push_back(permission);
  permission.permit.open(permission.generation);
  tell(context, peer, permission, word, get, put);
}

namespace {

/// Removes the permission that the origin has by that index. Returns false if an access is under way.
bool remove(Region& region, const Peer& peer, std::uint32_t index) CANELE_UNDER_LOCK;
bool remove(Region& region, const Peer& peer, std::uint32_t index) {
  const auto found = std::find_if(region.permissions.begin(), region.permissions.end(),
                                  [&](const Permission& one) { return one.rank == peer.rank && one.index == index; });
  if (found == region.permissions.end()) return true;
  found->permit.close();
  if (!peer.disconnected() && !found->permit.is_idle(found->generation)) return false;
  deregister(*found);
  region.permissions.erase(found);
  return true;
}

}  // namespace

Verdict drop_permission(Context& context, Peer& peer, std::uint32_t index) {
  Attachment& attachment = peer.one_sided->attached[index];
  if (attachment.word == Attachment::no_word) return Verdict::ok();
  Region* const region = context.one_sided.regions.find(attachment.region);  // nullptr: it is being freed
  if (region != nullptr && !remove(*region, peer, index))
    return Verdict::violation("it gives up a memory region that it still accesses");
  peer.one_sided->permit_words.free.push_back(std::exchange(attachment.word, Attachment::no_word));
  return Verdict::ok();
}

void close_permissions(const Region& region) {
  for (const Permission& one : region.permissions) one.permit.close();
}

bool is_accessed(const Context& context, const Region& region) {
  for (const Permission& one : region.permissions) {
    const Peer* const peer = context.peers[one.rank];
    if (peer != nullptr && !peer->disconnected() && !one.permit.is_idle(one.generation)) return true;
  }
  return false;
}

void end_permissions(Region& region) {
  for (Permission& one : region.permissions) deregister(one);
  region.permissions.clear();
}

Verdict on_attached(Context& /*context*/, Peer& peer, const wire::Head& head, std::span<const std::byte> payload) {
  PeerAccess* const access = peer.one_sided.get();
  wire::Attached fields{};
  if (access == nullptr || head.seq >= access->keys.size() || head.tag == 0 || head.tag > access->attaches)
    return Verdict::violation("it permits accesses to memory that this rank has not attached");
  if (!wire::take(payload, fields) || fields.get > MemoryKey::max_size || fields.put > MemoryKey::max_size ||
      payload.size() != std::size_t{fields.get} + fields.put)
    return Verdict::violation("a permission to access memory has a wrong size");
  RemoteKey* const key = access->keys[head.seq];
  if (key == nullptr || key->attach_number != head.tag) {
    CANELE_COVER_RARE(one_sided_permission_too_late);
    return Verdict::ok();  // the key is closed
  }
  const Rail* const rail = peer.rail;
  if (key->direct_access != nullptr || rail == nullptr || fields.word >= words_of(*rail))
    return Verdict::violation("a permission to access memory names no free word");
  auto direct = std::make_unique<DirectAccess>();
  direct->driver = rail->instance->driver.get();
  direct->permit = permit_at(rail->permits.theirs, fields.word);
  direct->generation = fields.generation;
  direct->get.size = fields.get;
  direct->put.size = fields.put;
  std::copy_n(payload.data(), fields.get, direct->get.bytes);
  std::copy_n(payload.data() + fields.get, fields.put, direct->put.bytes);
  key->direct_access = std::move(direct);
  key->direct.store(key->direct_access.get(), std::memory_order_release);  // acquire: post/direct_access
  return Verdict::ok();
}

void end_direct_accesses(Context& context, Peer& peer) {
  if (peer.one_sided == nullptr) return;
  for (RemoteKey* const key : peer.one_sided->keys) {
    if (key != nullptr) key->direct.store(nullptr, std::memory_order_relaxed);  // operations now end with an error
  }
  std::uint32_t index = 0;
  for (const Attachment& one : peer.one_sided->attached) {
    Region* const region = one.word != Attachment::no_word ? context.one_sided.regions.find(one.region) : nullptr;
    if (region != nullptr) remove(*region, peer, index);
    ++index;
  }
}

}  // namespace canele::comm::one_sided
