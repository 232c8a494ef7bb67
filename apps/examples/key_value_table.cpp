// SPDX-License-Identifier: BSD-3-Clause
//
// key_value_table.cpp - a table distributed over all ranks, by active messages with kept payloads.
//
// For readers who know pingpong.cpp. A rank owns every key whose remainder is its number. Messages come to a queue, so
// one thread handles them, and the table needs no lock. The value of an insertion stays where it has arrived.
//
//   c++ -std=c++20 key_value_table.cpp $(pkg-config --cflags --libs canele) -o key_value_table
//   canele-run -n 4 ./key_value_table
#include <algorithm>
#include <array>
#include <canele/active.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t keys_of_rank = 1000, messages = 1, most_lookups = 32;
enum class What : std::uint64_t { insert, look_up, found, phase_over };
struct Header {
  What what;
  std::uint64_t key;
};

/// The value of a key: 0 to 4,000 bytes.
std::vector<unsigned char> value_of(std::uint64_t key) {
  std::vector<unsigned char> value(key * 37 % 4001);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<unsigned char>(key + i);
  return value;
}

class Table {
 public:
  explicit Table(canele::engine& engine)
      : engine_(engine),
        session_(engine, "table"),
        queue_(engine),
        to_me_(session_, messages, queue_),
        over_(static_cast<std::size_t>(engine.size())) {}

  /// Inserts this rank's keys, looks up as many of all keys, and returns how many values were right.
  std::uint64_t run() {
    const std::uint64_t ranks = over_.size(), me = static_cast<std::uint64_t>(engine_.rank());
    for (std::uint64_t i = 0; i < keys_of_rank; ++i) {
      const std::uint64_t key = i * ranks + (i + me) % ranks;  // every rank inserts keys of all owners
      post(owner(key), {What::insert, key}, value_of(key));
    }
    end_phase();  // this rank has its keys
    end_phase();  // every rank has
    for (std::uint64_t i = 0; i < keys_of_rank; ++i) {
      const std::uint64_t key = (i * 7919 + me) % (keys_of_rank * ranks);
      while (looking_up_ == most_lookups) serve();
      ++looking_up_;
      send(owner(key), {What::look_up, key});
    }
    while (looking_up_ != 0) serve();
    end_phase();
    while (under_way_ != 0) serve();
    return right_;
  }

 private:
  /// A message with a value, which lives until the queue tells the end.
  struct Sending {
    canele::active_message message;
    std::vector<unsigned char> value;
  };

  int owner(std::uint64_t key) const { return static_cast<int>(key % over_.size()); }

  void post(int rank, Header header, std::vector<unsigned char> value) {
    auto* const sending = new Sending{{}, std::move(value)};
    sending->message.post(session_, rank, messages, canele::one(header), sending->value, queue_.entry_for(sending));
    ++under_way_;
  }
  /// Sends a message without a value. Without room towards the rank, the engine keeps it until there is room.
  void send(int rank, Header header) {
    if (!canele::inject_active(session_, rank, messages, canele::one(header))) post(rank, header, {});
  }

  /// Handles at least one entry of the queue.
  void serve() {
    std::array<canele::entry<Sending>, 16> room;
    for (const auto& entry : queue_.wait(room)) {
      entry.outcome().check("a message");
      if (entry.kind() == CANELE_ENTRY_ACTIVE_MESSAGE) {
        arrived(canele::kept_message(entry));
      } else {
        delete entry.user();
        --under_way_;
      }
    }
  }
  void arrived(canele::kept_message message) {
    Header header{};
    std::memcpy(&header, message.header().data(), sizeof header);
    if (header.what == What::insert) {
      values_.emplace(header.key, std::move(message));
    } else if (header.what == What::look_up) {
      post(message.source(), {What::found, header.key}, bytes_of(values_.at(header.key)));
    } else if (header.what == What::found) {
      right_ += bytes_of(message) == value_of(header.key) ? 1 : 0;
      --looking_up_;
    } else {
      ++over_[static_cast<std::size_t>(message.source())];
    }
  }
  static std::vector<unsigned char> bytes_of(const canele::kept_message& message) {
    const auto* const first = reinterpret_cast<const unsigned char*>(message.payload().data());
    return {first, first + message.payload().size()};
  }

  /// Returns when this rank has handled all that was sent to it in this phase: messages of a rank come in order.
  void end_phase() {
    for (int rank = 0; rank < engine_.size(); ++rank) send(rank, {What::phase_over, 0});
    ++phase_;
    while (std::any_of(over_.begin(), over_.end(), [this](std::uint64_t over) { return over < phase_; })) serve();
  }

  canele::engine& engine_;
  canele::session session_;
  canele::queue<Sending> queue_;
  canele::active_queue to_me_;
  std::unordered_map<std::uint64_t, canele::kept_message> values_;
  std::vector<std::uint64_t> over_;  ///< phases that each rank has ended
  std::uint64_t under_way_ = 0, looking_up_ = 0, right_ = 0, phase_ = 0;
};

}  // namespace

int main() try {
  canele::engine engine;
  const std::uint64_t right = Table(engine).run();
  if (engine.rank() == 0) {
    std::printf("key_value_table: %llu keys on %d ranks, %llu looked up by this one: %s\n",
                static_cast<unsigned long long>(keys_of_rank * static_cast<std::uint64_t>(engine.size())),
                engine.size(), static_cast<unsigned long long>(keys_of_rank),
                right == keys_of_rank ? "right" : "WRONG");
  }
  return right == keys_of_rank ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const canele::error& error) {
  std::fprintf(stderr, "key_value_table: %s\n", error.what());
  return EXIT_FAILURE;
}
