// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance: back-pressure until the queue is full, sleeping and being woken, closing with operations pending.
//
// A receiver that reads nothing is one that does not poll or, where a rank talks to itself, one whose engine answers
// `retry`.
#include <poll.h>

#include "tests/conformance/suite.hpp"

namespace canele::conformance {
namespace {

constexpr std::uint64_t most_queued = 1ull << 30;  ///< bytes that a driver may take for a peer that reads nothing
constexpr int polls_between = 2000;

/// Sends numbered packets until the driver takes no more although it has been polled, then sends the rest.
class Queue {
 public:
  Queue(Job& job, std::size_t size, Way way) : job_(job), size_(size), way_(way) {
    job.node.on_packet = [this](Rank, std::span<const std::byte> bytes) {
      if (closed_) return drivers::Take::retry;
      if (bytes.size() == last.size()) {
        announced_ = true;
        std::memcpy(&total_, bytes.data(), sizeof total_);
      } else {
        const Bytes right = pattern(size_, received_);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), right.begin(), right.end())) << "packet " << received_;
        ++received_;
      }
      return drivers::Take::taken;
    };
    job.node.keep_packets = false;
  }
  ~Queue() {
    job_.node.on_packet = nullptr;
    job_.node.keep_packets = true;
  }

  void fill(Rank to) {
    int quiet = 0;
    while (quiet < polls_between) {
      if (!job_.owed(to)) {
        const Status status = job_.try_send(to, pattern(size_, sent_), way_);
        ASSERT_NE(status, Status::failed);
        if (status != Status::full) {
          ++sent_;
          quiet = 0;
        }
        ASSERT_LT(sent_ * size_, most_queued) << "never full, though no rank reads";
        continue;
      }
      ++quiet;
      job_.node.poll();
      job_.look_at_parent();
    }
    EXPECT_GT(sent_, 0u);
  }
  void send_rest(Rank to, int more) {
    for (int i = 0; i < more; ++i) ASSERT_TRUE(job_.send(to, pattern(size_, sent_++), way_));
    std::memcpy(last.data(), &sent_, sizeof sent_);
    ASSERT_TRUE(job_.send(to, last));
    ASSERT_TRUE(job_.until([this] { return job_.node.pending() == 0; }, "all tokens"));
  }
  void open() { closed_ = false; }
  void close() { closed_ = true; }
  bool complete() const { return announced_ && received_ == total_; }

 private:
  Job& job_;
  const std::size_t size_;
  const Way way_;
  Bytes last = Bytes(9);  ///< a size that no other packet has
  std::uint64_t sent_ = 0, received_ = 0, total_ = 0;
  bool closed_ = false, announced_ = false;
};

void back_pressure_of(Job& job, std::size_t size, Way way) {
  const Rank peer = job.partner();
  Queue queue(job, size, way);
  if (job.rank == 0) {
    if (job.is_alone()) queue.close();
    queue.fill(peer);
    queue.open();
  }
  if (job.rank == 0 && !job.is_alone()) {
    if (!job.barrier("the queue is full")) return;
  } else {
    job.hold("not polling while the queue fills");
  }
  if (job.rank == 0) queue.send_rest(peer, 100);
  const bool receives = job.rank == 1 || job.is_alone();
  ASSERT_TRUE(job.until([&] { return !receives || queue.complete(); }, "everything of a queue that was full"));
  EXPECT_FALSE(job.owed(peer)) << "full, and no ready()";
  ASSERT_TRUE(job.align("the queue is empty"));
}

void back_pressure(Job& job) {
  if (!job.connect_all() || !job.align("all are connected")) return;
  back_pressure_of(job, job.can().max_packet, Way::packet);
  back_pressure_of(job, job.can().max_packet, Way::pieces);
  back_pressure_of(job, 20, Way::packet);
  if (job.can().max_inline > 9) back_pressure_of(job, job.can().max_inline, Way::in_line);
  if (job.can().reserves) back_pressure_of(job, 1000, Way::reserved);
}

void back_pressure_of_bulk(Job& job) {
  const Rank peer = job.partner();
  const bool sends = job.rank == 0, receives = job.rank == 1 || job.is_alone();
  Bytes source = pattern(std::min<std::size_t>(job.can().max_bulk, 100'000), 3), target(source.size());
  std::uint64_t sent = 0, written = 0;
  job.node.on_bulk_destination = [&](Rank, std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out,
                                     int) {
    EXPECT_EQ(key, 1 + (written / source.size()));
    out[0] = {target.data() + offset, length};
    return 1;
  };
  job.node.on_bulk_written = [&](Rank, std::uint64_t, std::uint64_t, std::uint64_t length) {
    written += length;
    if (written % source.size() == 0) {
      EXPECT_TRUE(target == source);
    }
  };
  if (!job.connect_all()) return;
  const auto push = [&] {
    const Status status = job.try_bulk_lent(peer, sent + 1, 0, {source.data(), source.size()});
    EXPECT_NE(status, Status::failed);
    sent += status == Status::ok || status == Status::pending;
  };
  if (sends) {
    // When the rank is alone, polling also receives, so the queue must fill between two polls.
    for (int quiet = 0; quiet < (job.is_alone() ? 1 : polls_between); ++quiet) {
      while (!job.owed(peer) && sent * source.size() < most_queued) push(), quiet = 0;
      if (!job.is_alone()) job.node.poll();
    }
    ASSERT_TRUE(job.owed(peer)) << "never full, though no rank reads";
    if (!job.barrier("the queue is full of bulk")) return;
    ASSERT_TRUE(job.until([&] { return !job.owed(peer); }, "ready() after full"));
    push();
  } else {
    job.hold("not polling while bulk is sent");
  }
  const Bytes count(reinterpret_cast<std::byte*>(&sent), reinterpret_cast<std::byte*>(&sent) + sizeof sent);
  if (sends) {
    ASSERT_TRUE(job.send(peer, count));
  }
  if (receives) {
    ASSERT_TRUE(job.until([&] { return job.node.packets.size() == 1; }, "the packet behind the bulk"));
    std::memcpy(&sent, job.node.packets[0].bytes.data(), sizeof sent);
    EXPECT_EQ(written, sent * source.size()) << "bulk is in order with packets";
  }
  ASSERT_TRUE(job.barrier("bulk data is written"));
  ASSERT_TRUE(job.until([&] { return job.node.pending() == 0; }, "all tokens"));
}

// ------------------------------------------------------------------------------------------------------- sleep

void pause(std::uint64_t steps) {
  for (; steps > 0; --steps) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Ping-pong in which both ranks sleep on the descriptor only, after pauses that meet every step of going to sleep.
void wake_up(Job& job) {
  if (!job.connect_all()) return;
  ASSERT_TRUE(job.barrier("all are connected"));
  const int cycles = job.options.slow ? 500 : 3000;
  std::mt19937_64 random(static_cast<std::uint64_t>(job.rank) + 5);
  const Rank peer = job.partner();
  for (int i = 0; i < cycles; ++i) {
    if (job.rank == 0) {
      pause(random() % 3000);
      ASSERT_TRUE(job.send(peer, pattern(8, static_cast<std::uint64_t>(i))));
    }
    if (!job.is_alone() || job.rank == 0) {
      while (job.node.packets.empty() && job.node.failures.empty()) {
        if (job.node.poll() == 0) {
          ASSERT_TRUE(job.sleep_strictly()) << "a wake-up was lost in cycle " << i;
        }
      }
      ASSERT_TRUE(job.node.failures.empty());
      ASSERT_TRUE(job.node.packets.front().bytes == pattern(8, static_cast<std::uint64_t>(i)));
      job.node.packets.pop_front();
    }
    if (job.rank == 1) {
      pause(random() % 3000);
      ASSERT_TRUE(job.send(peer, pattern(8, static_cast<std::uint64_t>(i))));
    }
  }
}

// With nothing to do, the driver reaches a sleep that is not ended at once: an idle rank uses no core.
void stays_asleep(Job& job) {
  if (!job.connect_all() || !job.send(job.partner(), pattern(300, 1))) return;
  ASSERT_TRUE(job.until([&] { return job.node.packets.size() == 1; }, "a packet"));
  ASSERT_TRUE(job.until([&] { return job.node.pending() == 0; }, "all tokens"));
  if (job.rank != 0) return;  // idle from here on
  bool quiet = false;
  ASSERT_TRUE(job.until(
      [&] {
        if (job.node.poll() > 0 || !job.node.driver->arm()) return false;
        pollfd one = {job.node.driver->descriptor(), POLLIN, 0};
        quiet = ::poll(&one, 1, 50) == 0;
        job.node.driver->disarm();
        return quiet;
      },
      "an idle driver whose descriptor is silent"));
}

// ------------------------------------------------------------------------------------------------------- close

// Packets sent before close() arrive; then the end, where the driver can report it.
void close_delivers(Job& job) {
  if (!job.connect_all() || !job.align("all are connected")) return;
  constexpr std::uint64_t count = 40;
  if (job.rank == 0) {
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(job.send(1, pattern(1 + i * 20, i)));
    ASSERT_TRUE(job.until([&] { return job.node.pending() == 0; }, "all tokens"));
    job.node.close();
    return;
  }
  job.may_fail.insert(0);
  ASSERT_TRUE(
      job.until([&] { return job.node.packets.size() == count || job.has_failed(0); }, "packets, then the end"));
  ASSERT_EQ(job.node.packets.size(), count);
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(job.node.packets[i].bytes == pattern(1 + i * 20, i)) << i;
  if (!job.can().detects_failure) return;
  ASSERT_TRUE(job.until([&] { return job.has_failed(0); }, "failed() for a peer that has left"));
  EXPECT_TRUE(job.node.failures[0].first) << "lost";
}

// Closes at every step of connecting: rank 0 polls once a round, and rank 1 leaves in the round in which it can.
void close_unseen(Job& job) {
  constexpr std::uint64_t count = 5;
  constexpr int rounds = 20;
  std::uint64_t sent = 0;
  const auto send_and_leave = [&] {
    while (job.is_up(0) && sent < count && !job.owed(0)) {
      const Status status = job.try_send(0, pattern(100, sent));
      ASSERT_NE(status, Status::failed);
      if (status != Status::full) ++sent;
    }
    if (sent == count && job.node.pending() == 0) job.node.close();
  };
  job.may_fail.insert(job.partner());
  if (job.rank == 0) {
    ASSERT_NE(job.connect(1), Status::failed);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; job.rank == 1 && i < polls_between && job.node.is_open(); ++i) job.node.poll(), send_and_leave();
    job.hold("the turn of rank 1");
    if (job.rank == 0) job.node.poll();
    job.hold("the turn of rank 0");
  }
  ASSERT_TRUE(job.until(
      [&] {
        if (job.rank == 0) return job.node.packets.size() == count || job.has_failed(1);
        if (job.node.is_open()) send_and_leave();
        return !job.node.is_open();
      },
      "packets from a rank that leaves early"));
  if (job.rank == 1) return;
  ASSERT_TRUE(job.is_up(1)) << job.node.failures[1].second;
  ASSERT_EQ(job.node.packets.size(), count);
}

// Closes with operations pending and the queue full: at once, without a callback. The peer gets whole packets.
void close_while_pending(Job& job) {
  if (!job.connect_all() || !job.align("all are connected")) return;
  const std::size_t size = job.can().max_packet;
  job.may_fail.insert(job.partner());
  if (job.rank == 0) {
    for (std::uint64_t i = 0; !job.owed(job.partner()) && i * size < most_queued; ++i) {
      job.try_send(job.partner(), pattern(size, i));
    }
    EXPECT_TRUE(job.owed(job.partner())) << "never full, though no rank reads";
    job.node.close();
    job.hold("closed");
    return;
  }
  job.hold("not polling until the peer has closed");
  std::uint64_t received = 0;
  job.node.keep_packets = false;
  job.node.on_packet = [&](Rank, std::span<const std::byte> bytes) {
    const Bytes right = pattern(size, received++);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), right.begin(), right.end())) << "packet " << received - 1;
    return drivers::Take::taken;
  };
  int quiet = 0;
  ASSERT_TRUE(job.until(
      [&] {
        quiet = job.node.poll() > 0 ? 0 : quiet + 1;
        job.busy();
        return job.can().detects_failure ? job.has_failed(0) : quiet > 10 * polls_between;
      },
      "the end of a peer that closed with work in hand"));
  job.node.on_packet = nullptr;
}

std::string needs_bulk(const Capabilities& can, const Options&) {
  return can.bulk_stream ? "" : "bulk_stream is not declared";
}
std::string needs_wake_up(const Capabilities& can, const Options&) {
  return can.wake_up == drivers::WakeUp::none ? "wake_up is none: the engine sleeps in timed steps" : "";
}

constexpr TestCase cases[] = {
    {"back_pressure", 2, back_pressure},
    {"back_pressure_bulk", 2, back_pressure_of_bulk, needs_bulk},
    {"wake_up", 2, wake_up, needs_wake_up},
    {"stays_asleep", 2, stays_asleep, needs_wake_up},
    {"close_delivers", 2, close_delivers, needs_others},
    {"close_unseen", 2, close_unseen, needs_others},
    {"close_while_pending", 2, close_while_pending},
};

}  // namespace

std::span<const TestCase> flow_tests() { return cases; }

}  // namespace canele::conformance
