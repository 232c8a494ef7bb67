// SPDX-License-Identifier: BSD-3-Clause
//
// SessionNames: what a peer and we call sessions when we talk to each other: numbers, each side its own.
//
// Who: Peer.
// Threads: under the engine's lock.
// Surprise: the last one of each direction is kept beside the tables, in the line of the peer that a message needs
//     anyway. Most programs use one session for long.
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
  /// Has the peer been told of our session `number` since it was opened the `epoch`th time?
  bool is_told(std::uint32_t number, std::uint32_t epoch) const {
    assert(epoch != 0 && "no session is used before it is opened");
    if (told_epoch_ == epoch && told_number_ == number) [[likely]]
      return true;
    return tables_ != nullptr && number < tables_->told.size() && tables_->told[number] == epoch;
  }
  /// It will be. false: it has been already. From now on that is the one to be asked for first.
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

  /// The session that the peer means; nullptr: it has announced none by that number.
  Session* find(std::uint16_t number) {
    if (heard_number_ == number && heard_ != nullptr) [[likely]]
      return heard_;
    heard_number_ = number;
    return heard_ = look_up(number);
  }
  Session* look_up(std::uint16_t number) const {
    return tables_ != nullptr && number < tables_->heard.size() ? tables_->heard[number] : nullptr;
  }
  /// The peer has announced it. Returns what it meant by that number until now; nullptr: nothing.
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
