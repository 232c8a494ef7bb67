// SPDX-License-Identifier: BSD-3-Clause
//
// Which sends wait behind those whose data a device reads, and when they leave.
#include "comm/device/send_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>

#include "comm/state/request.hpp"
#include "ltask/platform.hpp"

namespace canele::test {
namespace {

using comm::Session;
using comm::device::every_rank;
using comm::device::SendOrder;
using comm::device::WaitingSend;
using State = WaitingSend::State;

/// The definition, one by one.
bool precedes(const WaitingSend& one, const WaitingSend& other) {
  const bool meets =
      one.destination == other.destination || one.destination == every_rank || other.destination == every_rank;
  return one.session == other.session && meets && (one.session->order_across_tags || one.tag == other.tag);
}

class SendOrderTest : public ::testing::Test {
 protected:
  SendOrderTest() { sessions_[1].order_across_tags = true; }

  WaitingSend draw() {
    WaitingSend made;
    made.session = &sessions_[dice_() % 2];
    made.destination = static_cast<int>(dice_() % 4) - 1;
    made.tag = dice_() % 3;
    made.state = dice_() % 3 == 0 ? State::copying : State::ready;
    requests_.emplace_back();
    made.request = reinterpret_cast<comm::Request*>(&requests_.back());
    return made;
  }
  bool must_wait(const WaitingSend& send) const {
    return std::any_of(model_.begin(), model_.end(), [&](const WaitingSend& one) { return precedes(one, send); });
  }
  void post() {
    const WaitingSend send = draw();
    const bool waits = must_wait(send);
    EXPECT_EQ(order_.must_wait(*send.session, send.destination, send.tag), waits);
    if (send.state == State::copying) {
      order_.add(send);
    } else {
      EXPECT_EQ(order_.add_if_it_must_wait(send), waits);
      if (!waits) return;
    }
    model_.push_back(send);
  }
  void copy_one() {
    for (WaitingSend& one : model_) {
      if (one.state != State::copying || dice_() % 4 == 0) continue;
      one.state = State::ready;
      return order_.copied(*one.request, 0);
    }
  }
  /// Takes what may leave, and compares it with the definition.
  void release() {
    std::vector<comm::Request*> wanted, taken;
    std::deque<WaitingSend> kept;
    for (const WaitingSend& one : model_) {
      const bool blocked =
          std::any_of(kept.begin(), kept.end(), [&](const WaitingSend& b) { return precedes(b, one); });
      if (one.state == State::ready && !blocked) {
        wanted.push_back(one.request);
      } else {
        kept.push_back(one);
      }
    }
    for (const WaitingSend& one : order_.take_ready()) taken.push_back(one.request);
    EXPECT_EQ(taken, wanted);
    for (auto late = dice_() % 3; late > 0; --late) post();  // behind those that leave, too
    order_.remove_leaving();
    const auto has_left = [&](const WaitingSend& one) {
      return std::find(taken.begin(), taken.end(), one.request) != taken.end();
    };
    model_.erase(std::remove_if(model_.begin(), model_.end(), has_left), model_.end());
    if (!wanted.empty()) release();
  }

  std::mt19937 dice_{3};
  std::array<Session, 2> sessions_;
  std::deque<std::array<char, 8>> requests_;  ///< addresses only
  SendOrder order_{posix_platform()};
  std::deque<WaitingSend> model_;
};

TEST_F(SendOrderTest, KeepsTheOrderOfEveryMix) {
  for (int step = 0; step < 20'000; ++step) {
    const auto what = dice_() % 8;
    if (what < 4 && model_.size() < 40) post();
    if (what == 5 || what == 6) copy_one();
    if (what == 7) release();
  }
}

/// With a cost that grew with the sends that wait, this would take minutes.
TEST_F(SendOrderTest, HoldsManyBehindOne) {
  constexpr std::uint64_t many = 300'000;
  comm::Request* const first = draw().request;
  order_.add({&sessions_[0], 0, 0, first, nullptr, State::copying});
  order_.add({&sessions_[0], 0, many, draw().request, nullptr, State::copying});
  for (std::uint64_t i = 0; i < many; ++i) {
    EXPECT_TRUE(order_.add_if_it_must_wait({&sessions_[0], 0, many, first}));
    EXPECT_FALSE(order_.add_if_it_must_wait({&sessions_[0], 0, i + many + 1, first}));
    EXPECT_TRUE(order_.take_ready().empty());
  }
}

}  // namespace
}  // namespace canele::test
