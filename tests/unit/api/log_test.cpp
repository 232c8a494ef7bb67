// SPDX-License-Identifier: BSD-3-Clause
//
// The log in a function of the program.
#include <canele/log.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test::logs {
namespace {

struct Told {
  std::mutex mutex;
  std::vector<std::pair<int, std::string>> texts;

  static void take(int level, const char* text, void* told) {
    auto& in = *static_cast<Told*>(told);
    const std::lock_guard guard(in.mutex);
    in.texts.emplace_back(level, text);
  }
};

TEST(Log, GoesToTheProgram) {
  Told told;
  ASSERT_EQ(canele_on_log(Told::take, &told), CANELE_OK);
  {
    LocalJob job({2, {comm::find_driver("self"), comm::find_driver("shm")}, "aggregate", {}});
    job.engine(0).log(LogLevel::warning, "first line\nsecond line");
    job.engine(1).log(LogLevel::debug, "more than CANELE_VERBOSE asks for");
  }
  ASSERT_EQ(canele_on_log(nullptr, nullptr), CANELE_OK);
  posix_platform().log(LogLevel::info, "a line of this test: now on stderr again");
  ASSERT_EQ(told.texts.size(), 1u);
  EXPECT_EQ(told.texts[0].first, CANELE_LOG_WARNING);
  EXPECT_NE(told.texts[0].second.find("first line\nsecond line"), std::string::npos) << told.texts[0].second;
  EXPECT_NE(told.texts[0].second.back(), '\n');
  EXPECT_EQ(told.texts[0].second.find("canele:"), std::string::npos);
}

TEST(Log, IsReplacedWhileThreadsLog) {
  Told first, second;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!over) posix_platform().log(LogLevel::info, "text");
    });
  }
  for (int i = 0; i < 200; ++i) ASSERT_EQ(canele_on_log(Told::take, i % 2 == 0 ? &second : &first), CANELE_OK);
  while (true) {
    const std::lock_guard guard(first.mutex);
    if (!first.texts.empty()) break;
  }
  over = true;
  for (std::thread& one : threads) one.join();
  ASSERT_EQ(canele_on_log(nullptr, nullptr), CANELE_OK);
  for (const Told* told : {&first, &second}) {
    for (const auto& [level, text] : told->texts) EXPECT_EQ(level == CANELE_LOG_INFO ? text : "?", "text");
  }
}

}  // namespace
}  // namespace canele::test::logs
