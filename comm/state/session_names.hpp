// SPDX-License-Identifier: BSD-3-Clause
//
// SessionNames: the numbers by which this rank and a peer refer to sessions. Each side chooses its own numbers.
//
// Part of Peer. Called by the thread that holds the engine's lock.
//
// The last session of each direction is cached beside the tables, in the peer's cache line that every message needs
// anyway. Most programs use one session for a long time.
//
//   our number ──▶ epoch that the peer was told of, 0: none            its number ──▶ Session
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
  /// Returns whether the peer has been told of the local session `number` since its `epoch`th opening.
  bool is_told(std::uint32_t number, std::uint32_t epoch) const {
    assert(epoch != 0 && "no session is used before it is opened");
    if (told_epoch_ == epoch && told_number_ == number) [[likely]]
      return true;
    return tables_ != nullptr && number < tables_->told.size() && tables_->told[number] == epoch;
  }
  /// Records that the peer is being told of this session. Returns false if it had been told already. From now on this
  /// session is the cached one.
  bool tell(std::uint32_t number, std::uint32_t epoch) {
    const bool known = is_told(number, epoch);
    if (!known) {
      std::vector<std::uint32_t>& told = tables().told;
      if (told.size() <= number) told.resize(number + 1, 0);
      told[number] = epoch;
    }
    told_number_ = static_cast<std::uint16_t>(number);
    told_epoch_ = epoch;
    return !known;
  }

  /// Returns the session that the peer means by `number`, or nullptr if it has announced none by that number.
  Session* find(std::uint16_t number) {
    if (heard_number_ == number && heard_ != nullptr) [[likely]]
      return heard_;
    heard_number_ = number;
    return heard_ = look_up(number);
  }
  Session* look_up(std::uint16_t number) const {
    return tables_ != nullptr && number < tables_->heard.size() ? tables_->heard[number] : nullptr;
  }
  /// Records that the peer has announced `session` by this number. Returns the session that the number meant before, or
  /// nullptr.
  Session* hear(std::uint16_t number, Session& session) {
    std::vector<Session*>& heard = tables().heard;
    if (heard.size() <= number) heard.resize(number + 1u, nullptr);
    heard_number_ = number;
    heard_ = &session;
    return std::exchange(heard[number], &session);
  }

 private:
  struct Tables {
    std::vector<std::uint32_t> told;
    std::vector<Session*> heard;
  };
  Tables& tables() {
    if (tables_ == nullptr) tables_ = std::make_unique<Tables>();
    return *tables_;
  }

  std::uint32_t told_epoch_ = 0;
  std::uint16_t told_number_ = 0, heard_number_ = 0;
  Session* heard_ = nullptr;
  std::unique_ptr<Tables> tables_;
};

}  // namespace canele::comm
