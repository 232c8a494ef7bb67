// SPDX-License-Identifier: BSD-3-Clause
//
// Mailboxes: mail is taken in order, once, and by one thread at a time.
#include "comm/state/mailbox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace canele::test {
namespace {

struct Letter : comm::Mail {
  int writer = 0, number = 0;
};

TEST(Mailbox, GivesMailInOrder) {
  comm::Mailbox box;
  std::array<Letter, 4> letters;
  EXPECT_TRUE(box.put(letters[0]));
  EXPECT_FALSE(box.put(letters[1])) << "a thread serves it already";
  comm::Mail* const first = box.take();
  ASSERT_EQ(first, letters.data());
  ASSERT_EQ(first->next_mail, &letters[1]);
  EXPECT_EQ(letters[1].next_mail, nullptr);
  EXPECT_EQ(box.take(), nullptr);
  EXPECT_FALSE(box.put(letters[2])) << "it is being served";
  EXPECT_FALSE(box.end()) << "mail has come";
  EXPECT_EQ(box.take(), &letters[2]);
  EXPECT_TRUE(box.end());
  EXPECT_TRUE(box.put(letters[3])) << "it was idle";
}

/// Several threads write. The one that finds the mailbox idle serves it until it is idle again.
TEST(Mailbox, IsServedByOneThreadAtATime) {
  constexpr int writers = 4, each = 20'000;
  comm::Mailbox box;
  std::array<std::vector<Letter>, writers> letters;
  for (auto& all : letters) all.resize(each);
  std::array<int, writers> next{};  // guarded by the mailbox alone
  std::atomic<int> serving{0}, wrong{0};
  const auto serve = [&] {
    do {
      if (serving.fetch_add(1) != 0) ++wrong;
      for (comm::Mail* mail = box.take(); mail != nullptr; mail = mail->next_mail) {
        const auto& letter = static_cast<const Letter&>(*mail);
        if (letter.number != next[static_cast<std::size_t>(letter.writer)]++) ++wrong;
      }
      serving.fetch_sub(1);
    } while (!box.end());
  };
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < each; ++i) {
        Letter& letter = letters[static_cast<std::size_t>(writer)][static_cast<std::size_t>(i)];
        letter.writer = writer;
        letter.number = i;
        if (box.put(letter)) serve();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  for (const int count : next) EXPECT_EQ(count, each);
}

}  // namespace
}  // namespace canele::test
