// SPDX-License-Identifier: BSD-3-Clause
//
// The workload of one-sided operations.
//
// A rank that returns as another process has no keys for its peers: they have the keys of the old process.
#include "apps/sim/one_sided.hpp"

#include <canele/one_sided.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/sim/own_oracle.hpp"
#include "comm/state/one_sided.hpp"

namespace canele::sim {
namespace {

constexpr std::size_t records = 4, longest_record = 40'000, guard = 64, part_size = records * longest_record + guard;
constexpr std::size_t block = 24, stride = 40;  ///< of the last record
constexpr std::size_t temporary_size = 20'000;
constexpr std::size_t sums = 3000, sums_at = sizeof(std::uint64_t), parts_at = sums_at + sums * sizeof(std::uint64_t);
constexpr std::uint64_t key_tag = 1, end_tag = 2;

/// The bytes of record `number` of an origin: words that all hold the number.
void fill(std::vector<std::byte>& record, std::uint64_t number) {
  for (std::size_t at = 0; at + sizeof number <= record.size(); at += sizeof number)
    std::memcpy(record.data() + at, &number, sizeof number);
}

std::uint64_t word_at(const std::byte* memory, std::size_t at = 0) {
  std::uint64_t word = 0;
  std::memcpy(&word, memory + at, sizeof word);
  return word;
}

class OneSidedRank {
 public:
  OneSidedRank(World& world, const FaultPlan& faults, int rank, int operations, Dice dice)
      : world_(world), faults_(faults), rank_(rank), operations_(operations), dice_(dice) {}
  /// In a killed process nothing was freed or closed. The memory that it shares with others would outlive the run.
  ~OneSidedRank() {
    if (memory_ != nullptr) reinterpret_cast<comm::one_sided::Region*>(memory_)->shared.reset();
    for (const Remote& remote : peers_) {
      if (remote.key != nullptr) reinterpret_cast<comm::one_sided::RemoteKey*>(remote.key)->shared.reset();
    }
  }
  OneSidedRank(const OneSidedRank&) = delete;
  OneSidedRank& operator=(const OneSidedRank&) = delete;

  void run(canele_engine_t* engine) {
    engine_ = engine;
    const auto ranks = static_cast<std::size_t>(world_.ranks());
    make_window(parts_at + ranks * part_size);
    peers_.resize(ranks);
    counted.resize(ranks);
    counted_perhaps.resize(ranks);
    must(canele_session_open(engine, "keys", CANELE_ORDER_PER_TAG, &session_));
    temporary_.assign(temporary_size, std::byte{0});
    must(canele_memory_register(engine, temporary_.data(), temporary_.size(), nullptr, &temporary_memory_));
    must(canele_memory_key(temporary_memory_, card_.temporary.data()));
    canele_completion_t then{};
    then.kind = CANELE_COMPLETE_QUEUE;
    then.object = &queue_;
    must(canele_notification_open(engine, &then, &card_.slot));
    then.kind = CANELE_COMPLETE_COUNTER;
    then.object = &counter_;
    must(canele_notification_open(engine, &then, &card_.counted));
    must(canele_memory_key(memory_, card_.key.data()));
    exchange_cards();
    for (int i = 0; i < operations_; ++i) {
      if (dice_.under(4) == 0) world_.pause_for(dice_.under(20'000));
      operate();
      take_notifications();
      if (i == operations_ / 2) revoke();
    }
    finish();
  }
  /// Sends what the dead process may have owed to ranks that have never met it.
  static void run_as_successor(World& world, canele_engine_t* engine) {
    canele_session_t* session = nullptr;
    if (canele_session_open(engine, "keys", CANELE_ORDER_PER_TAG, &session) != CANELE_OK)
      return world.complain("a rank that has returned cannot open its session");
    for (int peer = 0; peer < world.ranks(); ++peer) {
      if (peer == canele_rank(engine)) continue;
      for (const std::uint64_t tag : {key_tag, end_tag}) {
        canele_request_t send{};
        canele_isend(session, peer, tag, nullptr, 0, &send);
        canele_wait(&send, nullptr);  // a rank that has lost the dead process rejects this one
      }
    }
    canele_session_close(session);
  }
  std::uint64_t completed = 0, added = 0, added_perhaps = 0;
  /// How often each of the sums was, and may have been, added to by this rank.
  std::vector<std::uint64_t> summed = std::vector<std::uint64_t>(sums), summed_perhaps = summed;
  /// How many notifications to the counter of each rank have, and may have, been made by this rank.
  std::vector<std::uint64_t> counted, counted_perhaps;
  std::uint64_t count() const { return canele_completion_counter_value(&counter_); }
  /// The word, and behind it the sums, that all ranks add to.
  std::uint64_t word(std::size_t index = 0) const {
    const std::byte* const shared = window_.empty() ? last_words_.data() : window_.data();
    return shared != nullptr ? word_at(shared, index * sizeof(std::uint64_t)) : 0;
  }
  std::string state() const { return "rank " + std::to_string(rank_) + " " + doing_; }

 private:
  struct Card {
    std::array<unsigned char, CANELE_KEY_SIZE> key{}, temporary{};
    std::uint32_t slot = 0, counted = 0;
  };
  /// What this rank knows of a peer, as an origin and as a target.
  struct Remote {
    canele_key_t *key = nullptr, *temporary = nullptr;
    Card card;
    std::array<std::uint64_t, records> written{};  ///< number of the last record that was put
    std::array<std::size_t, records> length{};
    std::uint64_t notified = 0;  ///< notifications sent to it
    std::uint64_t told = 0;      ///< notifications that have come from it
    std::uint64_t last_sum = 0;
    std::vector<std::uint64_t> last_sums = std::vector<std::uint64_t>(sums);
    bool lost = false;
  };

  void must(int code) {
    if (code != CANELE_OK) world_.complain("rank " + std::to_string(rank_) + ": " + canele_error_detail());
  }
  void wrong(int peer, const std::string& what) {
    world_.complain("rank " + std::to_string(rank_) + ", one-sided with rank " + std::to_string(peer) + ": " + what);
  }
  bool may_fail(int error) const {
    if (error == CANELE_ENOMEM) return faults_.memory > 0;
    const bool cut = faults_.rails > 0 || faults_.payload > 0;
    return ((error == CANELE_EPEER || error == CANELE_ECANCELED) && (world_.deaths() > 0 || cut)) ||
           (error == CANELE_EDRIVER && cut);
  }
  /// Waits for the request. Returns whether it has ended well.
  bool ended(canele_request_t& request, int peer) {
    canele_status_t status{};
    canele_wait(&request, &status);
    if (status.error == CANELE_OK) {
      ++completed;
      return true;
    }
    peers_[static_cast<std::size_t>(peer)].lost = true;
    if (!may_fail(status.error)) wrong(peer, std::string("ended with ") + canele_error_string(status.error));
    return false;
  }

  /// Makes the window: memory that ranks of this node map, or memory of the program.
  void make_window(std::size_t size) {
    if (dice_.under(2) == 0) {
      void* base = nullptr;
      must(canele_memory_allocate(engine_, size, nullptr, &base, &memory_));
      window_ = {static_cast<std::byte*>(base), size};
      return;
    }
    registered_.assign(size, std::byte{0});
    window_ = registered_;
    must(canele_memory_register(engine_, window_.data(), size, nullptr, &memory_));
  }

  void exchange_cards() {
    doing_ = "exchanges keys";
    std::vector<canele_request_t> sends(peers_.size()), receives(peers_.size());
    for (int peer = 0; peer < world_.ranks(); ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      must(canele_irecv(session_, peer, key_tag, CANELE_TAG_EXACT, &peers_[i].card, sizeof(Card), &receives[i]));
      must(canele_isend(session_, peer, key_tag, &card_, sizeof card_, &sends[i]));
    }
    for (int peer = 0; peer < world_.ranks(); ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      const bool sent = ended(sends[i], peer), here = ended(receives[i], peer);
      if (!sent || !here || peers_[i].card.slot == 0) continue;  // no keys: the peer has returned
      must(canele_key_open(engine_, peers_[i].card.key.data(), &peers_[i].key));
      must(canele_key_open(engine_, peers_[i].card.temporary.data(), &peers_[i].temporary));
    }
  }

  void operate() {
    const int peer = static_cast<int>(dice_.under(peers_.size()));
    Remote& remote = peers_[static_cast<std::size_t>(peer)];
    if (remote.key == nullptr || remote.lost) return;
    switch (dice_.under(6)) {
      case 0:
      case 1:
        return put_some(peer, remote);
      case 2:
        return get_one(peer, remote);
      case 3:
        return access_temporary(peer, remote);
      case 4:
        return sum_some(peer, remote);
      default:
        return add_one(peer, remote);
    }
  }

  /// The last record has gaps. Its length is a multiple of a block.
  static bool is_strided(std::size_t record) { return record == records - 1; }
  std::size_t choose_length(std::size_t record) {
    const std::uint64_t words = dice_.between(1, dice_.under(4) == 0 ? 5000 : 40);
    return is_strided(record) ? block * (1 + words / (stride / sizeof(std::uint64_t) + 1))
                              : sizeof(std::uint64_t) * words;
  }
  canele_access_options_t access_to(std::size_t record) const {
    canele_access_options_t options{};
    options.struct_size = sizeof options;
    if (is_strided(record)) {
      options.block = block;
      options.stride = stride;
    }
    return options;
  }
  std::uint64_t offset_of(std::size_t record) const {
    return parts_at + static_cast<std::uint64_t>(rank_) * part_size + record * longest_record;
  }

  /// Puts some records, of which a few notify the target, then lets the flush or the last put end.
  void put_some(int peer, Remote& remote) {
    doing_ = "puts to rank " + std::to_string(peer);
    std::vector<std::vector<std::byte>> kept;
    const auto target = static_cast<std::size_t>(peer);
    const std::uint64_t count = dice_.between(1, 8), counted_before = counted_perhaps[target];
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto record = static_cast<std::size_t>(dice_.under(records));
      const std::size_t length = choose_length(record);
      kept.emplace_back(length);
      fill(kept.back(), ++remote.written[record]);
      remote.length[record] = length;
      canele_access_options_t options = access_to(record);
      const std::uint64_t notification = dice_.under(6);
      if (notification == 0) {
        options.slot = remote.card.counted;
        ++counted_perhaps[target];
      } else if (notification <= 2) {
        options.slot = remote.card.slot;
        options.immediate = ++remote.notified << 32 | remote.written[record];
      }
      const canele_data_t data = canele_data_contiguous(kept.back().data(), length);
      must(canele_put(remote.key, offset_of(record), &data, &options, nullptr));
    }
    canele_request_t flushed{};
    must(canele_flush(engine_, peer, nullptr, &flushed));
    if (ended(flushed, peer)) counted[target] += counted_perhaps[target] - counted_before;
  }

  /// Accesses memory that its target revokes at some time: three puts, then a get.
  void access_temporary(int peer, Remote& remote) {
    doing_ = "accesses temporary memory of rank " + std::to_string(peer);
    std::vector<std::byte> bytes(dice_.under(4) == 0 ? temporary_size : 64);
    fill(bytes, ++accesses_to_temporary_);
    const bool get = accesses_to_temporary_ % 4 == 0;
    const canele_data_t data = canele_data_contiguous(bytes.data(), bytes.size());
    canele_request_t request{};
    must(get ? canele_get(remote.temporary, 0, &data, nullptr, &request)
             : canele_put(remote.temporary, 0, &data, nullptr, &request));
    canele_status_t status{};
    canele_wait(&request, &status);
    if (status.error == CANELE_EREVOKED) return;
    if (status.error == CANELE_OK) return static_cast<void>(++completed);
    remote.lost = true;
    if (!may_fail(status.error)) wrong(peer, std::string("ended with ") + canele_error_string(status.error));
  }

  /// Revokes the temporary memory. From now on it must not change.
  void revoke() {
    doing_ = "revokes";
    must(canele_memory_free(temporary_memory_));
    revoked_ = temporary_;
  }

  void get_one(int peer, Remote& remote) {
    doing_ = "gets from rank " + std::to_string(peer);
    const auto record = static_cast<std::size_t>(dice_.under(records));
    if (remote.written[record] == 0) return;
    std::vector<std::byte> bytes(remote.length[record]);
    const canele_data_t data = canele_data_contiguous(bytes.data(), bytes.size());
    canele_request_t request{};
    const canele_access_options_t options = access_to(record);
    must(canele_get(remote.key, offset_of(record), &data, &options, &request));
    if (!ended(request, peer)) return;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
      if (word_at(bytes.data(), at) != remote.written[record])
        return wrong(peer, "a get has read record " + std::to_string(word_at(bytes.data(), at)) + ", not " +
                               std::to_string(remote.written[record]));
    }
  }

  /// Adds 1 to a word. The request of the operation ends it, or a flush behind it.
  void add_one(int peer, Remote& remote) {
    doing_ = "adds to rank " + std::to_string(peer);
    std::uint64_t before = 0;
    canele_request_t request{};
    const bool by_flush = ++added_perhaps % 2 == 0;  // it has no completion of its own
    must(canele_atomic(remote.key, 0, CANELE_ATOMIC_ADD, 8, 1, 0, &before, nullptr, by_flush ? nullptr : &request));
    if (by_flush) must(canele_flush(engine_, peer, nullptr, &request));
    if (!ended(request, peer)) return;
    ++added;
    if (before < remote.last_sum) wrong(peer, "a fetch-and-add has returned a value that is too small");
    remote.last_sum = before + 1;
  }

  /// Adds 1 to the first sums, in one or several packets.
  void sum_some(int peer, Remote& remote) {
    doing_ = "accumulates at rank " + std::to_string(peer);
    const std::size_t count = dice_.between(1, dice_.under(4) == 0 ? sums : 20);
    std::vector<std::uint64_t> ones(count, 1), before(count);
    const bool wanted = dice_.under(2) == 0;
    const canele_data_t data = canele_data_contiguous(ones.data(), count * sizeof(std::uint64_t));
    canele_request_t request{};
    for (std::size_t i = 0; i < count; ++i) ++summed_perhaps[i];  // first: the rank may be killed within the call
    must(canele_accumulate(remote.key, sums_at, &data, CANELE_SUM, CANELE_UINT64, wanted ? before.data() : nullptr,
                           nullptr, &request));
    if (!ended(request, peer)) return;
    for (std::size_t i = 0; i < count; ++i) {
      ++summed[i];
      if (!wanted) continue;
      if (before[i] < remote.last_sums[i]) wrong(peer, "an accumulate has returned a value that is too small");
      remote.last_sums[i] = before[i] + 1;
    }
  }

  void take_notifications() {
    canele_entry_t entry{};
    while (canele_queue_take(engine_, &queue_, &entry, 1) == 1) {
      Remote& remote = peers_[static_cast<std::size_t>(entry.source)];
      const std::uint64_t number = entry.immediate & 0xffffffff;
      if (entry.immediate >> 32 != ++remote.told)
        return wrong(entry.source, "notification " + std::to_string(entry.immediate >> 32) + " has come, not " +
                                       std::to_string(remote.told));
      const bool strided = (entry.tag - parts_at) % part_size == (records - 1) * longest_record;
      for (std::uint64_t at = 0; at < entry.length; at += sizeof(std::uint64_t)) {
        const std::uint64_t gaps = strided ? at / block * (stride - block) : 0;
        if (word_at(window_.data(), entry.tag + at + gaps) < number)
          return wrong(entry.source, "a notification has come before its data");
      }
    }
  }

  /// Tells all ranks that this one is through, and waits until they are: they may still access the window.
  void finish() {
    doing_ = "waits for the end of the others";
    std::vector<canele_request_t> sends(peers_.size()), receives(peers_.size());
    for (int peer = 0; peer < world_.ranks(); ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      must(canele_irecv(session_, peer, end_tag, CANELE_TAG_EXACT, nullptr, 0, &receives[i]));
      must(canele_isend(session_, peer, end_tag, nullptr, 0, &sends[i]));
    }
    for (int peer = 0; peer < world_.ranks(); ++peer) {
      const auto i = static_cast<std::size_t>(peer);
      ended(sends[i], peer);
      ended(receives[i], peer);
      take_notifications();
    }
    for (Remote& remote : peers_) {
      for (canele_key_t** const key : {&remote.key, &remote.temporary}) {
        if (*key != nullptr) must(canele_key_close(std::exchange(*key, nullptr)));
      }
    }
    check_untouched();
    last_words_.assign(window_.begin(), window_.begin() + parts_at);
    window_ = {};
    must(canele_memory_free(std::exchange(memory_, nullptr)));
    must(canele_session_close(session_));
  }

  void check_untouched() {
    if (temporary_ != revoked_) world_.complain("rank " + std::to_string(rank_) + ": revoked memory has changed");
    for (std::size_t part = 1; part <= peers_.size(); ++part) {
      const auto end = window_.begin() + static_cast<std::ptrdiff_t>(parts_at + part * part_size);
      if (std::any_of(end - guard, end, [](std::byte one) { return one != std::byte{0}; }))
        wrong(static_cast<int>(part) - 1, "bytes behind its records have changed");
      check_gaps(part - 1);
    }
  }

  void check_gaps(std::size_t part) {
    const std::byte* const record = window_.data() + parts_at + part * part_size + (records - 1) * longest_record;
    for (std::size_t at = 0; at + stride <= longest_record; at += stride) {
      if (std::any_of(record + at + block, record + at + stride, [](std::byte one) { return one != std::byte{0}; }))
        return wrong(static_cast<int>(part), "bytes between its blocks have changed");
    }
  }

  World& world_;
  const FaultPlan& faults_;
  const int rank_, operations_;
  Dice dice_;
  canele_engine_t* engine_ = nullptr;
  canele_session_t* session_ = nullptr;
  canele_memory_t *memory_ = nullptr, *temporary_memory_ = nullptr;
  canele_queue_t queue_{};
  canele_completion_counter_t counter_{};
  std::span<std::byte> window_;
  std::vector<std::byte> registered_, temporary_, revoked_, last_words_;
  std::uint64_t accesses_to_temporary_ = 0;
  std::vector<Remote> peers_;
  Card card_;
  std::string doing_ = "has not begun";
};

using OneSidedRanks = std::vector<std::unique_ptr<OneSidedRank>>;

/// Each accumulate that has ended well has happened once.
void check_sum(World& world, const OneSidedRanks& ranks, std::size_t index) {
  std::uint64_t sum = 0, added = 0, perhaps = 0;
  for (const auto& rank : ranks) {
    sum += rank->word(1 + index);
    added += rank->summed[index];
    perhaps += rank->summed_perhaps[index];
  }
  if (sum >= added && sum <= perhaps) return;
  world.complain("sum " + std::to_string(index) + " is " + std::to_string(sum) +
                 "; expected: " + std::to_string(added) + " to " + std::to_string(perhaps));
}

/// Each notification to a counter that has ended well has been counted once, unless its rank was killed before it
/// could.
void check_counts(World& world, const OneSidedRanks& ranks) {
  for (std::size_t target = 0; target < ranks.size(); ++target) {
    std::uint64_t made = 0, perhaps = 0;
    for (const auto& rank : ranks) {
      if (rank->counted.empty()) continue;  // it has never begun
      made += rank->counted[target];
      perhaps += rank->counted_perhaps[target];
    }
    const std::uint64_t count = ranks[target]->count();
    if ((count >= made || world.deaths() > 0) && count <= perhaps) continue;
    world.complain("rank " + std::to_string(target) + " has counted " + std::to_string(count) +
                   " notifications; expected: " + std::to_string(made) + " to " + std::to_string(perhaps));
  }
}

/// Without a death or a lost rail, every addition has happened once.
void check_sums(World& world, const OneSidedRanks& ranks) {
  std::uint64_t words = 0, added = 0, perhaps = 0;
  for (const auto& rank : ranks) {
    words += rank->word();
    added += rank->added;
    perhaps += rank->added_perhaps;
  }
  if (words < added || words > perhaps) {
    world.complain("the words hold " + std::to_string(words) + "; expected: " + std::to_string(added) + " to " +
                   std::to_string(perhaps));
  }
  for (std::size_t i = 0; i < sums; ++i) check_sum(world, ranks, i);
  check_counts(world, ranks);
}

}  // namespace

Outcome run_one_sided(const RunOptions& options) {
  Dice dice = Dice(options.seed).split(7);
  World world(choose_world(options, dice));
  const int operations = options.messages != 0 ? options.messages : static_cast<int>(dice.between(3, 60));
  return run_with_own_oracle<OneSidedRank>(
      options, world, dice, std::to_string(operations) + " one-sided operations a rank",
      [&](const FaultPlan& faults, int rank, Dice own) {
        return std::make_unique<OneSidedRank>(world, faults, rank, operations, own);
      },
      [&](const OneSidedRanks& ranks) { check_sums(world, ranks); });
}

}  // namespace canele::sim
