// SPDX-License-Identifier: BSD-3-Clause
//
// The chunks of a transfer that both ends copy: each is claimed once. Two threads, or one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "comm/state/rtr_table.hpp"

namespace canele::test {
namespace {

using From = comm::ChunkClaims::From;

TEST(ChunkClaims, EachChunkOnceByTwoThreads) {
  drivers::SharedLine line{};
  constexpr std::uint32_t chunks = 20'000;
  comm::ChunkClaims ours(line, 7), theirs(line, 7);
  ours.open();
  EXPECT_EQ(ours.claim_chunks(From::front, chunks).count, 0u) << "not taken yet";
  ASSERT_TRUE(theirs.acquire());
  EXPECT_FALSE(ours.close());
  std::vector<std::atomic<int>> copies(chunks);
  std::atomic<int> lasts{0};
  const auto work = [&](comm::ChunkClaims claims, From from) {
    for (auto mine = claims.claim_chunks(from, chunks); mine.count != 0; mine = claims.claim_chunks(from, chunks)) {
      for (std::uint32_t i = 0; i < mine.count; ++i) ++copies[mine.first + i];
      const bool well = mine.first > 2 || mine.first + mine.count <= 2;
      if (claims.copied(well, mine.count, chunks)) ++lasts;
    }
  };
  std::thread other(work, theirs, From::back);
  work(ours, From::front);
  other.join();
  for (const auto& one : copies) ASSERT_EQ(one, 1);
  EXPECT_EQ(lasts, 1);
  EXPECT_TRUE(ours.all_copied(chunks) && ours.any_failed());
}

TEST(ChunkClaims, AnOldOneFindsNothing) {
  drivers::SharedLine line{};
  comm::ChunkClaims first(line, 1), second(line, 2);
  first.open();
  ASSERT_TRUE(first.close());
  EXPECT_FALSE(first.acquire());
  EXPECT_EQ(first.claim_chunks(From::front, 4).count, 0u);
  second.open();
  EXPECT_FALSE(first.acquire());
  ASSERT_TRUE(second.acquire());
  EXPECT_EQ(first.claim_chunks(From::front, 4).count, 0u);
  EXPECT_EQ(second.claim_chunks(From::front, 4).first, 0u);
  EXPECT_EQ(second.claim_chunks(From::back, 4).first, 3u);
  EXPECT_FALSE(second.any_failed());
  second.revoke();
  EXPECT_EQ(second.claim_chunks(From::front, 4).count, 0u);
  EXPECT_FALSE(second.acquired());
}

TEST(ChunkClaims, AreLongWhileTheOtherEndHasNotCome) {
  drivers::SharedLine line{};
  comm::ChunkClaims claims(line, 1);
  const auto counts = [&](const std::vector<From>& who, std::uint32_t chunks) {
    std::vector<std::uint32_t> found;
    claims.open();
    claims.acquire();
    for (const From from : who) found.push_back(claims.claim_chunks(from, chunks).count);
    return found;
  };
  using Counts = std::vector<std::uint32_t>;
  EXPECT_EQ(counts({From::front, From::front, From::front}, 8), (Counts{4, 4, 0}));
  EXPECT_EQ(counts({From::back, From::front, From::back, From::front, From::back}, 8), (Counts{4, 2, 1, 1, 0}));
  EXPECT_EQ(counts({From::front, From::front}, 33), (Counts{2, 2})) << "others wait";
}

TEST(ChunkClaims, AreLongFromTheFirstOnIfTheOtherEndIsBusy) {
  drivers::SharedLine line{};
  comm::ChunkClaims claims(line, 1);
  claims.open();
  claims.acquire();
  EXPECT_EQ(claims.claim_chunks(From::front, 3, true).count, 3u);
  claims.open();
  claims.acquire();
  EXPECT_EQ(claims.claim_chunks(From::back, 4).count, 2u);
  EXPECT_EQ(claims.claim_chunks(From::front, 4, true).count, 1u) << "it has come all the same";
}

TEST(ChunkClaims, WhatTheOtherProcessWritesStaysInside) {
  drivers::SharedLine line{};
  comm::ChunkClaims claims(line, 1);
  for (std::uint64_t word = 0; word < std::uint64_t{1} << 31; word = word * 3 + 1) {
    for (const From from : {From::front, From::back}) {
      claims.open();
      ASSERT_TRUE(claims.acquire());
      line.words[0].fetch_or(word);
      const comm::ChunkClaims::Range mine = claims.claim_chunks(from, 100);
      ASSERT_LE(mine.first + mine.count, 100u) << word;
    }
  }
}

}  // namespace
}  // namespace canele::test
