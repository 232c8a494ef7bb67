// SPDX-License-Identifier: BSD-3-Clause
//
// Events between simulated ranks. See fabric.hpp.
//
// A frame to a process that is gone is dropped silently, except the frames of a handshake.
#include "drivers/sim/fabric.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/sim/sim_driver.hpp"

namespace canele::drivers::sim {
namespace {

std::map<std::string, Fabric*, std::less<>>& fabrics() {
  static auto* const all = new std::map<std::string, Fabric*, std::less<>>;
  return *all;
}

std::vector<std::byte> read_all(const std::vector<iovec>& pieces) {
  std::vector<std::byte> bytes;
  for (const iovec& piece : pieces) {
    const auto* from = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), from, from + piece.iov_len);
  }
  return bytes;
}

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* names[] = {"memory", "ring", "stream", "rma", "plain"};
  return names[static_cast<std::size_t>(kind)];
}

const char* name_of(Fault fault) {
  constexpr const char* names[] = {"delay",        "back-pressure", "pending-send", "short-write", "duplicate",
                                   "truncated",    "corrupt",       "clog",         "partition",   "rail-loss",
                                   "registration", "copy-full",     "copy-failed",  "payload"};
  static_assert(std::size(names) == static_cast<std::size_t>(Fault::count));
  return names[static_cast<std::size_t>(fault)];
}

Fabric::Fabric(World its_world, FabricOptions options, Dice its_dice)
    : world(std::move(its_world)), dice(its_dice), options_(std::move(options)) {
  const auto ranks = static_cast<std::size_t>(options_.ranks);
  drivers_.resize(ranks);
  ports_.resize(ranks);
  regions_.resize(ranks);
  fabrics()[options_.name] = this;
}

Fabric::~Fabric() { fabrics().erase(options_.name); }

Fabric* Fabric::find(std::string_view name) {
  const auto found = fabrics().find(name);
  return found == fabrics().end() ? nullptr : found->second;
}

bool Fabric::attach(SimDriver& driver) {
  SimDriver*& place = drivers_[static_cast<std::size_t>(driver.rank())];
  if (place != nullptr) return false;
  place = &driver;
  return true;
}

void Fabric::detach(SimDriver& driver) {
  SimDriver*& place = drivers_[static_cast<std::size_t>(driver.rank())];
  if (place == &driver) place = nullptr;
  drop_regions(driver.rank());
}

bool Fabric::joins(Rank a, Rank b) const {
  if (a == b) return false;
  return a / options_.ranks_per_node == b / options_.ranks_per_node ? options_.local : options_.remote;
}

std::uint64_t Fabric::pass(Rank from, Rank to, std::size_t size) {
  Port& out = ports_[static_cast<std::size_t>(from)];
  Port& in = ports_[static_cast<std::size_t>(to)];
  const std::uint64_t wire = wire_time(size), leaves = std::max(now(), out.out_free);
  out.out_free = leaves + options_.model.gap_ns + wire;
  in.in_free = std::max(leaves + options_.model.latency_ns, in.in_free) + wire;
  return in.in_free;
}

void Fabric::transmit(Rank from, Rank to, Frame frame) {
  ++frames;
  Channel& way = channel(from, to);
  if (way.cut) {
    if (frame.type == Frame::Type::hello) no_way(from, to, frame.incarnation);
    return;
  }
  const std::uint64_t leaves = std::max(now(), ports_[static_cast<std::size_t>(from)].out_free);
  std::uint64_t arrives = pass(from, to, std::max(frame.bytes.size(), frame.charged));
  if (strikes(Fault::delay, rates.delay)) arrives += dice.under(rates.longest_delay_ns);
  frame.time = way.last_time = std::max(arrives, way.last_time);
  if (!frame.unread.empty()) {
    world.timeline.at(leaves + dice.under(frame.time - leaves + 1), [this, from, to] { read_pending(from, to); });
  }
  const bool twice = options_.may_duplicate && frame.type == Frame::Type::packet && frame.unread.empty() &&
                     strikes(Fault::duplicate, rates.duplicate);
  if (twice) {
    Frame copy = frame;
    copy.charged = 0;
    way.transit.push_back(std::move(copy));
  }
  way.transit.push_back(std::move(frame));
  world.timeline.at(way.last_time, [this, from, to] { arrive(from, to); });
}

/// Fails the attempt of a driver to connect over a rail that was cut. The cut may be older than the driver, or its
/// process.
void Fabric::no_way(Rank from, Rank to, std::uint64_t incarnation) {
  world.timeline.after(1 + dice.under(rates.longest_delay_ns), [this, from, to, incarnation] {
    SimDriver* const driver = driver_of(from);
    if (driver != nullptr && driver->incarnation() == incarnation) driver->lose(to, "there is no way to it", false);
  });
}

/// Reads the first frame that is still in its sender's memory.
void Fabric::read_pending(Rank from, Rank to) {
  for (Frame& frame : channel(from, to).transit) {
    if (frame.unread.empty()) continue;
    frame.bytes = read_all(frame.unread);
    frame.unread.clear();
    SimDriver* const sender = driver_of(from);
    if (sender != nullptr) sender->sent(to, std::exchange(frame.token, nullptr));
    return;
  }
}

void Fabric::read_all_pending(Rank from, Rank to) {
  for (Frame& frame : channel(from, to).transit) {
    if (!frame.unread.empty()) frame.bytes = read_all(std::exchange(frame.unread, {}));
  }
}

void Fabric::forget_pending(Rank from, Rank to) {
  std::erase_if(channel(from, to).transit, [](const Frame& frame) { return !frame.unread.empty(); });
}

void Fabric::arrive(Rank from, Rank to) {
  Channel& way = channel(from, to);
  while (!way.transit.empty() && way.transit.front().time <= now()) {
    if (way.delayed_until > now()) {
      world.timeline.at(way.delayed_until, [this, from, to] { arrive(from, to); });
      return;
    }
    if (!way.transit.front().unread.empty()) read_pending(from, to);
    Frame frame = std::move(way.transit.front());
    way.transit.pop_front();
    SimDriver* const receiver = driver_of(to);
    // A handshake frame to a missing process is answered, as a kernel does.
    const bool to_be_answered = frame.type == Frame::Type::hello || frame.type == Frame::Type::welcome;
    if (receiver == nullptr || receiver->incarnation() != frame.peer_incarnation) {
      Frame answer;
      answer.type = Frame::Type::reject;
      answer.peer_incarnation = frame.incarnation;
      answer.incarnation = frame.peer_incarnation;
      if (to_be_answered) transmit(to, from, std::move(answer));
      continue;
    }
    if (frame.type == Frame::Type::packet) damage(from, to, frame);
    world.trace((static_cast<std::uint64_t>(from) << 40) ^ (static_cast<std::uint64_t>(to) << 20) ^ frame.bytes.size() ^
                (static_cast<std::uint64_t>(frame.type) << 60));
    receiver->arrived(from, std::move(frame));
  }
}

/// Damages a frame, as only a broken or hostile peer does.
void Fabric::damage(Rank from, Rank to, Frame& frame) {
  const bool cut = frame.bytes.size() > 1 && strikes(Fault::truncated, rates.truncated);
  if (cut) frame.bytes.resize(1 + dice.under(frame.bytes.size() - 1));
  const bool flipped = strikes(Fault::corrupt, rates.corrupt);
  if (flipped) {
    const std::size_t at = dice.under(std::min<std::size_t>(frame.bytes.size(), 64));
    frame.bytes[at] ^= static_cast<std::byte>(1u << dice.under(8));
  }
  if ((cut || flipped) && world.broken) world.broken(from, to);
  if (cut || flipped || !strikes(Fault::payload, rates.payload)) return;
  frame.bytes[dice.under(frame.bytes.size())] ^= static_cast<std::byte>(1u << dice.under(8));
  if (world.spoiled) world.spoiled(from, to);
}

void Fabric::delay(Rank from, Rank to, std::uint64_t until, Fault as) {
  ++injected[static_cast<std::size_t>(as)];
  Channel& way = channel(from, to);
  way.delayed_until = std::max(way.delayed_until, until);
}

void Fabric::cut(Rank a, Rank b) {
  ++injected[static_cast<std::size_t>(Fault::rail_loss)];
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    Channel& way = channel(from, to);
    way.cut = true;
    forget_pending(from, to);
    world.timeline.after(1 + dice.under(rates.longest_delay_ns), [this, here = to, there = from] {
      channel(there, here).transit.clear();
      SimDriver* const driver = driver_of(here);
      if (driver != nullptr && dice.under(2) == 0) driver->discard(there);
      if (driver != nullptr) driver->lose(there, "the rail was cut", false);
    });
  }
}

void Fabric::kill(Rank rank) {
  SimDriver* const dead = driver_of(rank);
  if (dead == nullptr) return;
  detach(*dead);
  for (Rank peer = 0; peer < options_.ranks; ++peer) {
    forget_pending(rank, peer);
    SimDriver* const other = driver_of(peer);
    if (other == nullptr || !other->capabilities().detects_failure) continue;
    if (!other->knows(rank) && channel(rank, peer).transit.empty()) continue;
    // Arrives after everything that the process has sent, as with a socket.
    const std::uint64_t when = std::max(now(), channel(rank, peer).last_time) + 1 + dice.under(rates.longest_delay_ns);
    world.timeline.at(when, [this, peer, rank, old = dead->incarnation()] {
      SimDriver* const driver = driver_of(peer);
      if (driver != nullptr) driver->lose_incarnation(rank, old);
    });
  }
}

std::uint64_t Fabric::add_region(Rank rank, Region region) {
  regions_[static_cast<std::size_t>(rank)].emplace(++last_region_, std::move(region));
  return last_region_;
}

Region* Fabric::region(Rank rank, std::uint64_t id) {
  if (rank < 0 || rank >= options_.ranks) return nullptr;
  auto& all = regions_[static_cast<std::size_t>(rank)];
  const auto found = all.find(id);
  return found == all.end() ? nullptr : &found->second;
}

void Fabric::drop_region(Rank rank, std::uint64_t id) {
  const Region* const known = region(rank, id);
  if (known != nullptr) {
    for (const auto& [reader, incarnation] : known->readers) {
      // A reader that has died, or was declared failed, may still have a copy in flight: it will find nothing.
      const SimDriver* const by = driver_of(reader);
      if (by == nullptr || by->incarnation() != incarnation) continue;
      if (driver_of(rank) == nullptr || !driver_of(rank)->is_up(reader)) continue;
      world.complain("rank " + std::to_string(rank) + " deregisters memory that rank " + std::to_string(reader) +
                     " is copying");
    }
  }
  regions_[static_cast<std::size_t>(rank)].erase(id);
}

SharedLines Fabric::lines(const SimDriver& driver, Rank peer, std::uint64_t incarnation, int count) {
  const Rank rank = driver.rank();
  const std::uint64_t own = driver.incarnation();
  auto& memory = lines_[rank < peer ? std::pair(own, incarnation) : std::pair(incarnation, own)];
  if (memory.empty()) memory = std::vector<SharedLine, Counted<SharedLine>>(static_cast<std::size_t>(2 * count));
  SharedLine* const low = memory.data();
  SharedLine* const high = low + count;
  return rank < peer ? SharedLines{low, high, count} : SharedLines{high, low, count};
}

}  // namespace canele::drivers::sim
