// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance: every message arrives whole, once and in order: all sizes, bulk, random traffic, many ranks.
#include "tests/conformance/suite.hpp"
#include "tests/conformance/traffic.hpp"

namespace canele::conformance {
namespace {

void both_ways(Job& job, const Script& script, const char* what) {
  Exchange exchange(job);  // before the first packet can come
  exchange.add(job.partner(), script, script);
  if (job.connect_all()) exchange.run(what);
}

void sizes(Job& job) { both_ways(job, threshold_script(job.can()), "packets of all sizes"); }

void bulk_sizes(Job& job) {
  // Bulk of max_bulk bytes itself is sent only where max_bulk is at most a few MiB, not far more than the fabric
  // buffers.
  const std::size_t most = std::max<std::size_t>(2 << 20, std::min<std::size_t>(2 * job.can().max_bulk + 1, 8 << 20));
  both_ways(job, bulk_script(job.can(), most), "bulk of all sizes");
}

std::size_t many(const Options& options) { return options.slow ? 10'000 : 100'000; }

void random_both_ways(Job& job) {
  Exchange exchange(job);
  const Rank peer = job.partner();
  const auto seed_of = [](Rank rank) { return 31 + static_cast<std::uint64_t>(rank); };
  exchange.add(peer, random_script(job.can(), seed_of(job.rank), many(job.options)),
               random_script(job.can(), seed_of(peer), many(job.options)));
  if (job.connect_all()) exchange.run("100,000 random messages (10,000 if slow)");
}

// The receiver answers `retry` to a packet now and then; sender and receiver poll with small budgets.
void order(Job& job) {
  Script script = random_script(job.can(), 5, 3000);
  for (std::size_t i = 0; i < script.size(); ++i) {
    script[i].bulk = job.can().bulk_stream && i % 5 == 0;
    script[i].retries = i % 11 == 0 ? 2 : 0;
    script[i].size = script[i].bulk ? 1 + script[i].size * 13 % 50'000 : std::min(script[i].size, job.can().max_packet);
    if (script[i].size > job.can().max_inline) script[i].way = Way::packet;
    script[i].pieces = std::min(script[i].pieces, static_cast<int>(script[i].size));
  }
  Exchange exchange(job);
  exchange.add(job.partner(), script, script);
  if (!job.connect_all()) return;
  job.until(
      [&] {
        const std::size_t before = exchange.with(job.partner()).received();
        job.node.poll(3);
        EXPECT_LE(exchange.with(job.partner()).received() - before, 64u) << "the budget was 3";
        return exchange.step();
      },
      "packets and bulk in order");
}

/// Sends 2 GiB in all, through a window of memory: offsets exceed 32 bits.
class Flood {
 public:
  static constexpr std::size_t window = 16u << 20;
  static constexpr std::uint64_t base = 3ull << 30;  ///< where the transfer begins: it crosses 4 GiB
  static constexpr std::uint64_t total = (2ull << 30) + 12345;

  explicit Flood(Job& job)
      : job_(job), piece_(std::min<std::size_t>(job.can().max_bulk, window / 2)), source_(pattern(window, 9)) {}

  void send_some(Rank to) {
    for (int i = 0; i < 8 && sent_ < total && !job_.owed(to); ++i) {
      const std::size_t at = (base + sent_) % window;
      const std::size_t size = std::min<std::uint64_t>({piece_, total - sent_, window - at});
      const Status status = job_.try_bulk_lent(to, 1, base + sent_, {source_.data() + at, size});
      ASSERT_NE(status, Status::failed);
      if (status == Status::full) return;
      sent_ += size;
      job_.busy();
    }
  }
  void receive_into(Node& node) {
    target_.assign(window, std::byte{0});
    node.on_bulk_destination = [this](Rank, std::uint64_t key, std::uint64_t offset, std::uint64_t length, iovec* out,
                                      int) {
      EXPECT_EQ(key, 1u);
      EXPECT_EQ(offset, base + written_);
      EXPECT_LE(written_ + length, total);
      const std::size_t at = offset % window;
      out[0] = {target_.data() + at, std::min<std::uint64_t>(length, window - at)};
      return 1;
    };
    node.on_bulk_written = [this](Rank, std::uint64_t, std::uint64_t offset, std::uint64_t length) {
      const std::size_t at = offset % window;
      EXPECT_EQ(std::memcmp(target_.data() + at, source_.data() + at, length), 0) << "at " << offset;
      std::memset(target_.data() + at, 0, std::min<std::uint64_t>(length, 64));
      written_ += length;
    };
  }
  bool all_sent() const { return sent_ == total && job_.node.pending() == 0; }
  bool all_written() const { return written_ == total; }

 private:
  Job& job_;
  const std::size_t piece_;
  Bytes source_, target_;
  std::uint64_t sent_ = 0, written_ = 0;
};

void more_than_2_gib(Job& job) {
  Flood flood(job);
  const bool sends = job.rank == 0, receives = job.rank == 1 || job.is_alone();
  if (receives) flood.receive_into(job.node);
  if (!job.connect_all()) return;
  job.until(
      [&] {
        if (sends) flood.send_some(job.partner());
        return (!sends || flood.all_sent()) && (!receives || flood.all_written());
      },
      "2 GiB of bulk");
}

void all_to_all(Job& job) {
  Exchange exchange(job);
  for (Rank peer = 0; peer < job.size; ++peer) {
    if (peer == job.rank) continue;
    exchange.add(peer, random_script(job.can(), static_cast<std::uint64_t>(job.rank * 100 + peer), 20),
                 random_script(job.can(), static_cast<std::uint64_t>(peer * 100 + job.rank), 20));
    ASSERT_NE(job.connect(peer), Status::failed) << peer;
  }
  const auto all = static_cast<std::size_t>(job.size - 1);
  ASSERT_TRUE(job.until([&] { return job.node.up.size() == all; }, "connections of all with all"));
  exchange.run("messages of all to all");
}

std::string needs_bulk(const Capabilities& can, const Options&) {
  return can.bulk_stream ? "" : "bulk_stream is not declared";
}
std::string needs_speed(const Capabilities& can, const Options& options) {
  if (!can.bulk_stream) return "bulk_stream is not declared";
  return options.slow ? "declared too slow for 2 GiB" : "";
}
constexpr TestCase cases[] = {
    {"sizes", 2, sizes},
    {"bulk_sizes", 2, bulk_sizes, needs_bulk},
    {"order", 2, order},
    {"random", 2, random_both_ways},
    {"bulk_2gib", 2, more_than_2_gib, needs_speed},
    {"all_to_all", 32, all_to_all, needs_others, nullptr, false, 8},
};

}  // namespace

std::span<const TestCase> exchange_tests() { return cases; }

}  // namespace canele::conformance
