// SPDX-License-Identifier: BSD-3-Clause
//
// Two engines that send each other large messages, for the tests of RTRs. One thread.
//
// An end that "computes" is an engine that is not stepped.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "comm/state/peer.hpp"
#include "comm/state/rtr_table.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test::rtrs {

using Words = std::vector<std::uint64_t>;

inline Words word_pattern(std::size_t bytes, std::uint64_t seed) {
  Words words(bytes / sizeof(std::uint64_t));
  std::iota(words.begin(), words.end(), seed << 32);
  return words;
}

class Rtrs : public testing::Test {
 protected:
  explicit Rtrs(const std::vector<std::string>& settings = {"CANELE_VERBOSE=0"})
      : job_(options(settings)), s_(job_.open("rtrs")) {
    exchange(0, 1);
    exchange(1, 0);
  }
  static JobOptions options(const std::vector<std::string>& settings) {
    JobOptions o;
    o.settings = settings;
    return o;
  }
  /// Connects, and makes the session known.
  void exchange(int from, int to) {
    canele_request_t send{}, receive{};
    canele_irecv(s_[to], from, 0, CANELE_TAG_EXACT, nullptr, 0, &receive);
    canele_isend(s_[from], to, 0, nullptr, 0, &send);
    job_.finish(receive) && job_.finish(send);
  }
  void post(canele_request_t* request, Words& into, std::uint64_t tag = 1, int source = 0) {
    ASSERT_EQ(canele_irecv(s_[1], source, tag, CANELE_TAG_EXACT, into.data(), into.size() * 8, request), CANELE_OK);
  }
  void send(canele_request_t* request, const Words& words, std::uint64_t tag = 1) {
    ASSERT_EQ(canele_isend(s_[0], 1, tag, words.data(), words.size() * 8, request), CANELE_OK);
  }
  void step(int rank, int times = 200) {
    for (int i = 0; i < times; ++i) job_.engine(rank).step();
  }
  std::uint64_t count(int rank, comm::Counter counter) { return job_.engine(rank).counters.read(counter); }
  /// Returns how many bytes of the messages from rank 0 to rank 1 the kernel has copied.
  std::uint64_t copied() { return count(0, comm::Counter::rma_put_bytes) + count(1, comm::Counter::rma_get_bytes); }
  const comm::RtrTable* rtrs_to(int rank) { return job_.engine(rank).peer(1 - rank).rtr_table.get(); }
  void expect_received(canele_request_t& request, const Words& into, const Words& sent) {
    ASSERT_TRUE(job_.finish(request));
    EXPECT_EQ(status_of(request).error, CANELE_OK);
    EXPECT_EQ(status_of(request).length, sent.size() * 8);
    EXPECT_EQ(into, sent);
  }
  /// Moves a message. Its receive is posted first, or its announcement comes first.
  void move(const Words& out, bool posted_first) {
    Words in(out.size());
    if (posted_first) {
      post(&received_, in);
      step(0);
      send(&sent_, out);
    } else {
      send(&sent_, out);
      step(1);
      post(&received_, in);
    }
    expect_received(received_, in, out);
    ASSERT_TRUE(job_.finish(sent_));
  }

  /// Checks that the large receive gets the 64 bytes that were sent first, and the second one what is sent now.
  void expect_little_then_large(canele_request_t& early, canele_request_t& second, const Words& more) {
    send(&sent_, out_);
    ASSERT_TRUE(job_.finish(received_));
    EXPECT_EQ(status_of(received_).length, 64u);
    expect_received(second, more, out_);
    ASSERT_TRUE(job_.finish(sent_) && job_.finish(early));
  }

  static constexpr std::size_t large = 1'000'000;
  LocalJob job_;
  std::vector<canele_session_t*> s_;
  const Words out_ = word_pattern(large, 1), out2_ = word_pattern(large, 2);
  Words in_ = Words(large / 8);
  canele_request_t sent_{}, received_{};
};

}  // namespace canele::test::rtrs
