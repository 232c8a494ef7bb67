// SPDX-License-Identifier: BSD-3-Clause
//
// fault: does what the contract allows but good drivers seldom do. See decorators.hpp. It answers full at odd times,
// splits bulk data into small parts, lets a peer die at a chosen packet, or loses a rail. Its seed is random or chosen,
// and logged.
//
// drivers/driver.hpp gives the threading; an rma() by any thread reads only dead_.
//
//   Life of a peer here:   up ──Nth packet──▶ dying ──no memory in use──▶ dead ──▶ failed() to the engine
//
// A peer that is to die first becomes silent (`dying`): its sends answer full, its packets are rejected. Its death is
// reported only after the wrapped driver has given back the memory of its operations and bulk data.
//
// Operation (in operations_, keyed by its own address, which is the token that the wrapped driver gets): the rank, and
// the token of the engine. Rejected: passing the engine's tokens on. The engine may use one token for several
// operations, and this decorator must know which operation belongs to which rank.
#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "drivers/decorators/decorator.hpp"

namespace canele::drivers {
namespace {

class Fault final : public Decorator {
 public:
  Fault(std::unique_ptr<Driver> wrapped, const OptionValues& options)
      : Decorator(std::move(wrapped)),
        seed_(options.at("seed")),
        full_(options.at("full")),
        short_(options.at("short")),
        burst_(static_cast<int>(options.at("burst"))),
        kill_at_(static_cast<std::uint64_t>(options.at("kill"))),
        lose_rail_at_(static_cast<std::uint64_t>(options.at("lose-rail"))),
        victim_(static_cast<Rank>(options.at("rank"))) {}

 private:
  struct Peer {
    int blocked = 0;          ///< polls for which sends still answer full
    bool inner_owes = false;  ///< the wrapped driver owes a ready()
    bool owes = false;        ///< the engine waits for a ready()
    bool up = false, dying = false, failed = false, lost = false;
    bool closed = false;  ///< a rejected packet made the wrapped driver close it
    std::uint64_t packets = 0;
    int pending = 0;
    std::uint64_t granted = 0;  ///< bytes of the engine's memory that the wrapped driver may still write
  };
  struct Operation {
    Rank rank;
    Token token;
  };

  Status open_impl(DriverContext& outer, Address* address, std::string* reason) override {
    const std::uint64_t seed = seed_ >= 0 ? static_cast<std::uint64_t>(seed_) : outer.random() >> 12;
    state_ = seed;
    outer.log(2, "fault: seed " + std::to_string(seed) + " (fault:seed=" + std::to_string(seed) + " repeats it)");
    dead_ = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(std::max(outer.size, 1)));
    count_ = static_cast<std::size_t>(std::max(outer.size, 1));
    return Decorator::open_impl(outer, address, reason);
  }

  /// splitmix64: one seed gives one sequence, on every machine.
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  bool happens(double probability) {
    return probability > 0 && static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

  bool is_dead(Rank rank) const {
    return rank >= 0 && static_cast<std::size_t>(rank) < count_ && dead_[static_cast<std::size_t>(rank)].load();
  }

  // ---------------------------------------------------------------------------------------------------- sends

  /// Decides whether a send goes on. ok: the wrapped driver may be asked.
  Status admit(Rank rank) {
    if (is_dead(rank)) return Status::failed;
    Peer& peer = peers_[rank];
    if (peer.dying) return Status::full;  // failed() follows
    if (peer.blocked == 0 && happens(full_)) peer.blocked = burst_;
    if (peer.blocked == 0) return Status::ok;
    peer.owes = true;
    return Status::full;
  }
  Status account(Rank rank, Status status) {
    Peer& peer = peers_[rank];
    if (status == Status::full) peer.owes = peer.inner_owes = true;
    if (status == Status::ok || status == Status::pending) count_packet(rank, peer);
    return status;
  }
  /// Makes the token for the wrapped driver.
  Token wrap(Rank rank, Token token) {
    auto made = std::make_unique<Operation>(Operation{rank, token});
    const Token own = made.get();
    operations_[own] = std::move(made);
    return own;
  }
  Status account_operation(Rank rank, Token own, Status status) {
    if (status == Status::pending) {
      ++peers_[rank].pending;
    } else {
      operations_.erase(own);
    }
    return status;
  }

  Status send_inline_impl(Rank rank, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override {
    const Status may = admit(rank);
    return may != Status::ok ? may : account(rank, Decorator::send_inline_impl(rank, head, head_size, body, body_size));
  }
  Status send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t size, Token token) override {
    const Status may = admit(rank);
    if (may != Status::ok) return may;
    const Token own = wrap(rank, token);
    const Status status = Decorator::send_packet_impl(rank, pieces, count, size, own);
    return account(rank, account_operation(rank, own, status));
  }
  Status bulk_send_impl(Rank rank, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override {
    const Status may = admit(rank);
    if (may != Status::ok) return may;
    const Token own = wrap(rank, token);
    const Status status = Decorator::bulk_send_impl(rank, transfer_id, offset, pieces, count, size, own);
    return account(rank, account_operation(rank, own, status));
  }
  std::span<std::byte> reserve_impl(Rank rank, std::size_t size) override {
    if (admit(rank) != Status::ok) return {};
    const auto room = Decorator::reserve_impl(rank, size);
    if (room.empty()) account(rank, Status::full);
    return room;
  }
  void commit_impl(Rank rank, std::size_t size) override {
    Decorator::commit_impl(rank, size);
    if (size > 0) account(rank, Status::ok);
  }
  Status rma_impl(Rank rank, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces,
                  int count, std::size_t size, Token token) override {
    if (is_dead(rank)) return Status::failed;
    if (capabilities_.rma_any_thread) {
      return Decorator::rma_impl(rank, op, rkey, offset, pieces, count, size, token);
    }
    const Status may = admit(rank);
    if (may != Status::ok) return may;
    const Token own = wrap(rank, token);
    const Status status = Decorator::rma_impl(rank, op, rkey, offset, pieces, count, size, own);
    if (status == Status::full) peers_[rank].owes = peers_[rank].inner_owes = true;
    return account_operation(rank, own, status);
  }
  Status connect_impl(Rank rank, std::span<const std::byte> address) override {
    return is_dead(rank) ? Status::failed : Decorator::connect_impl(rank, address);
  }

  // ---------------------------------------------------------------------------------------------------- deaths

  void count_packet(Rank rank, Peer& peer) {
    ++peer.packets;
    ++packets_;
    const bool is_victim = victim_ < 0 ? !has_killed_ : rank == victim_;
    if (kill_at_ > 0 && peer.packets == kill_at_ && is_victim) {
      has_killed_ = true;
      begin_death(peer, true);
    }
    if (lose_rail_at_ > 0 && packets_ == lose_rail_at_) {
      rail_lost_ = true;
      for (auto& [other, its] : peers_) begin_death(its, false);
    }
  }
  void begin_death(Peer& peer, bool lost) {
    if (peer.failed || peer.dying) return;
    peer.dying = true;
    peer.lost = lost;
    ++dying_;
  }
  int bury() {
    int events = 0;
    for (auto& [rank, peer] : peers_) {
      if (!peer.dying || ((peer.pending > 0 || peer.granted > 0) && !peer.closed)) continue;
      peer.dying = false;
      peer.failed = true;
      --dying_;
      dead_[static_cast<std::size_t>(rank)].store(true);
      forget_operations(rank);
      ++events;
      const std::string after = " after " + std::to_string(peer.lost ? kill_at_ : lose_rail_at_) + " packets";
      engine().failed(rank, peer.lost,
                      "fault: rank " + std::to_string(rank) + (peer.lost ? " killed" : ": rail lost") + after);
    }
    return events;
  }
  void forget_operations(Rank rank) {
    std::erase_if(operations_, [rank](const auto& entry) { return entry.second->rank == rank; });
    peers_[rank].pending = 0;
  }
  bool is_silent(Rank rank) { return peers_[rank].dying || peers_[rank].failed; }

  // ---------------------------------------------------------------------------------------------------- events

  int poll_impl(int budget) override {
    int events = Decorator::poll_impl(budget);
    for (auto& [rank, peer] : peers_) {
      if (peer.blocked > 0) --peer.blocked;
      if (!peer.owes || peer.blocked > 0 || peer.inner_owes || peer.dying || peer.failed) continue;
      peer.owes = false;
      ++events;
      engine().ready(rank);
    }
    if (dying_ > 0) events += bury();
    return events;
  }
  bool arm_impl(bool on) override {
    const auto must_poll = [](const auto& entry) {
      const Peer& peer = entry.second;
      return peer.dying || (peer.owes && !peer.inner_owes && !peer.failed);
    };
    if (on && std::any_of(peers_.begin(), peers_.end(), must_poll)) return false;
    return Decorator::arm_impl(on);
  }

  Take packet(Rank from, std::span<const std::byte> bytes) override {
    if (is_silent(from)) {
      peers_[from].closed = true;
      return Take::rejected;
    }
    const Take take = Decorator::packet(from, bytes);
    if (take == Take::taken) count_packet(from, peers_[from]);
    if (take == Take::rejected) bury_rejected(from);
    return take;
  }
  /// Ends a peer that the engine already knows to be closed; nothing is reported.
  void bury_rejected(Rank rank) {
    Peer& peer = peers_[rank];
    dying_ -= peer.dying;
    peer.dying = false;
    peer.failed = true;
    dead_[static_cast<std::size_t>(rank)].store(true);
    forget_operations(rank);
  }
  int bulk_destination(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length, iovec* out,
                       int max) override {
    if (is_silent(from)) return 0;
    const bool cut = length > 1 && happens(short_);
    const std::uint64_t part = cut ? 1 + next() % (length - 1) : length;
    const int count = Decorator::bulk_destination(from, transfer_id, offset, part, out, cut ? 1 : max);
    for (int i = 0; i < count; ++i) peers_[from].granted += out[i].iov_len;
    return count;
  }
  void bulk_written(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length) override {
    Peer& peer = peers_[from];
    peer.granted -= std::min(peer.granted, length);
    if (!is_silent(from)) Decorator::bulk_written(from, transfer_id, offset, length);
  }
  void done(Token token, Status status) override {
    const auto found = operations_.find(token);
    if (found == operations_.end()) return;
    const Operation operation = *found->second;
    operations_.erase(found);
    --peers_[operation.rank].pending;
    if (!peers_[operation.rank].failed) Decorator::done(operation.token, status);
  }
  void ready(Rank rank) override {
    peers_[rank].inner_owes = false;  // poll_impl() passes it on
  }
  void connected(Rank rank) override {
    if (is_silent(rank)) return;
    peers_[rank].up = true;
    Decorator::connected(rank);
    if (rail_lost_) begin_death(peers_[rank], false);
  }
  void failed(Rank rank, bool lost, std::string_view reason) override {
    Peer& peer = peers_[rank];
    if (peer.failed) return;
    if (peer.dying) {
      peer.closed = true;  // bury() reports it, as this decorator's fault
      return;
    }
    bury_rejected(rank);
    Decorator::failed(rank, lost, reason);
  }

  const double seed_, full_, short_;
  const int burst_;
  const std::uint64_t kill_at_, lose_rail_at_;
  const Rank victim_;
  std::uint64_t state_ = 0, packets_ = 0;
  bool has_killed_ = false, rail_lost_ = false;
  int dying_ = 0;
  std::map<Rank, Peer> peers_;
  std::unordered_map<Token, std::unique_ptr<Operation>> operations_;
  std::unique_ptr<std::atomic<bool>[]> dead_;
  std::size_t count_ = 0;
};

}  // namespace

std::unique_ptr<Driver> make_fault(std::unique_ptr<Driver> inner, const OptionValues& options) {
  return std::make_unique<Fault>(std::move(inner), options);
}

}  // namespace canele::drivers
