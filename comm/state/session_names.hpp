// SPDX-License-Identifier: BSD-3-Clause
//
// SessionNames: the numbers by which this rank and a peer refer to sessions. Each side chooses its own numbers.
//
// Part of Peer. Called by the thread that holds the engine's lock.
//
// The last session of each direction is cached beside the tables, in the peer's cache line that every message needs
// anyway. Most programs use one session for a long time.
//
//   our number ──▶ epoch announced to the peer, 0: none            its number ──▶ Session
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace canele::comm {

class Session;

class SessionNames {
 public:
  /// Returns whether the local session `number` was announced to the peer since its `epoch`th opening.
  bool is_announced(std::uint32_t number, std::uint32_t epoch) const {
    assert(epoch != 0 && "no session is used before it is opened");
    if (announced_epoch_ == epoch && announced_number_ == number) [[likely]]
      return true;
    return tables_ != nullptr && number < tables_->announced.size() && tables_->announced[number] == epoch;
  }
  /// Records that this session is being announced to the peer. Returns false if it was announced already. From now on
  /// this session is the cached one.
  bool announce(std::uint32_t number, std::uint32_t epoch) {
    const bool known = is_announced(number, epoch);
    if (!known) {
      std::vector<std::uint32_t>& announced = tables().announced;
      if (announced.size() <= number) announced.resize(number + 1, 0);
      announced[number] = epoch;
    }
    announced_number_ = static_cast<std::uint16_t>(number);
    announced_epoch_ = epoch;
    return !known;
  }

  /// Returns the session that the peer means by `number`, or nullptr if it has announced none by that number.
  Session* find(std::uint16_t number) {
    if (learned_number_ == number && learned_ != nullptr) [[likely]]
      return learned_;
    learned_number_ = number;
    return learned_ = look_up(number);
  }
  Session* look_up(std::uint16_t number) const {
    return tables_ != nullptr && number < tables_->learned.size() ? tables_->learned[number] : nullptr;
  }
  /// Records that the peer has announced `session` by this number. Returns the session that the number meant before, or
  /// nullptr.
  Session* learn(std::uint16_t number, Session& session) {
    std::vector<Session*>& learned = tables().learned;
    if (learned.size() <= number) learned.resize(number + 1u, nullptr);
    learned_number_ = number;
    learned_ = &session;
    return std::exchange(learned[number], &session);
  }

 private:
  struct Tables {
    std::vector<std::uint32_t> announced;
    std::vector<Session*> learned;
  };
  Tables& tables() {
    if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
    return *tables_;
  }

  std::uint32_t announced_epoch_ = 0;
  std::uint16_t announced_number_ = 0, learned_number_ = 0;
  Session* learned_ = nullptr;
  std::unique_ptr<Tables> tables_;
};

}  // namespace canele::comm
