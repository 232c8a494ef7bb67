// SPDX-License-Identifier: BSD-3-Clause
//
// The world, the run and its figures.
//
// The clock starts when all receives of all ranks are posted, and stops at the end of the last task. This is what a
// runtime's user would measure.
#include "apps/sim/cholesky.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "apps/sim/cholesky_rank.hpp"
#include "apps/sim/cluster.hpp"
#include "apps/sim/process.hpp"

namespace canele::sim {
namespace {

constexpr std::uint64_t patience_ns = 1'000'000'000'000;

WorldOptions world_for(const RunOptions& options) {
  WorldOptions world = cluster_of(options, options.ranks != 0 ? options.ranks : 4);
  world.worker = options.cholesky.test_ns == 0;
  world.comparison_ns = options.cholesky.comparison_ns;
  return world;
}

/// Returns the layout on the squarest grid of `ranks` ranks.
cholesky::Layout layout_for(const CholeskyOptions& options, int ranks) {
  const int rows = cholesky::squarest_rows(ranks);
  return {options.tiles * options.tile, options.tile, rows, ranks / rows};
}

using Ranks = std::vector<std::unique_ptr<CholeskyRank>>;

struct Figures {
  double seconds = 0, tflops = 0, busy = 0;
  std::uint64_t receives = 0, bytes = 0, most_bytes = 0, forwarded = 0, packets = 0, comparisons = 0;
};

Figures figures_of(const World& world, const CholeskyOptions& options, const Ranks& ranks, std::uint64_t begin) {
  Figures f;
  std::uint64_t end = begin, busy_ns = 0;
  for (const auto& rank : ranks) {
    end = std::max(end, rank->ended_at());
    busy_ns += rank->busy_ns();
    f.receives += rank->receives();
    f.bytes += rank->bytes_sent();
    f.most_bytes = std::max(f.most_bytes, rank->bytes_sent());
    f.forwarded += rank->bytes_forwarded();
    f.packets += rank->packets();
  }
  f.comparisons = world.comparisons();
  f.seconds = static_cast<double>(end - begin) / 1e9;
  const double size = static_cast<double>(options.tiles) * options.tile;
  f.tflops = size * size * size / 3 / f.seconds / 1e12;
  f.busy = static_cast<double>(busy_ns) / 1e9 / (f.seconds * static_cast<double>(ranks.size()) * options.cores);
  return f;
}

/// Returns the figures as one line, for the user and for apps/sim/cholesky_plots.py.
std::string report(const RunOptions& run, const cholesky::Layout& layout, int ranks, const Figures& f) {
  const CholeskyOptions& o = run.cholesky;
  const auto each = [](std::uint64_t sum, std::uint64_t count) {
    return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
  };
  return fmt::format(
      "cholesky: ranks={} grid={}x{} tiles={} way={} strategy={} gigabytes={} comparison_ns={} test_ns={} shuffled={} "
      "ms={:.3f} "
      "tflops={:.3f} busy={:.3f} received={} bytes={} most_of_a_rank={} forwarded={} packets={} "
      "comparisons_per_message={:.1f}\n",
      ranks, layout.grid_rows(), layout.grid_columns(), o.tiles, o.way, o.strategy, o.gigabytes, o.comparison_ns,
      o.test_ns, o.shuffled ? 1 : 0, f.seconds * 1e3, f.tflops, f.busy, f.receives, f.bytes, f.most_bytes, f.forwarded,
      f.packets, each(f.comparisons, f.receives));
}

std::string wait_graph(const World& world, const Ranks& ranks) {
  std::string text;
  for (int rank = 0; rank < world.options().ranks; ++rank) {
    if (!world.is_through(rank)) text += ranks[static_cast<std::size_t>(rank)]->state() + "\n";
  }
  return text;
}

}  // namespace

std::string text_of(const CholeskyOptions& options) {
  const CholeskyOptions usual;
  std::string text;
  const auto differs = [&](const char* option, const auto& value, const auto& from) {
    if (value != from) text += fmt::format(" {} {}", option, value);
  };
  differs("--tiles", options.tiles, usual.tiles);
  differs("--cores", options.cores, usual.cores);
  differs("--core-gflops", options.core_gflops, usual.core_gflops);
  differs("--latency", options.latency_us, usual.latency_us);
  differs("--gap", options.gap_us, usual.gap_us);
  differs("--bandwidth", options.gigabytes, usual.gigabytes);
  if (options.shuffled) text += " --shuffled";
  differs("--way", options.way, usual.way);
  differs("--strategy", options.strategy, usual.strategy);
  differs("--comparison-ns", options.comparison_ns, usual.comparison_ns);
  differs("--test-ns", options.test_ns, usual.test_ns);
  return text;
}

Outcome run_cholesky(const RunOptions& options) {
  Outcome outcome;
  World world(world_for(options));
  const int count = world.options().ranks;
  outcome.world = fmt::format("{} ranks, {} x {} tiles of {}", count, options.cholesky.tiles, options.cholesky.tiles,
                              options.cholesky.tile);
  if (const std::string why = make_room_for(count); !why.empty()) outcome.complaints.push_back("cholesky: " + why);
  if (!outcome.complaints.empty()) return outcome;
  const cholesky::Layout layout = layout_for(options.cholesky, count);
  StartBarrier posted(world.scheduler);
  const CholeskyRank::Job job{world, layout, options.cholesky, cholesky::way_of(options.cholesky.way), posted};
  Ranks ranks;
  for (int rank = 0; rank < count; ++rank) ranks.push_back(std::make_unique<CholeskyRank>(job, rank));
  world.start([&](int rank, canele_engine_t* engine) { ranks[static_cast<std::size_t>(rank)]->run(engine); });
  bool rest = world.run_until([&] { return posted.arrived() == count; }, patience_ns);
  const std::uint64_t begin = world.timeline.now();
  posted.open();
  rest = rest && world.run(begin + patience_ns);
  if (!rest && world.complaints().empty()) world.complain("the world has not come to rest");
  if (!rest) outcome.wait_graph = wait_graph(world, ranks) + world.wait_graph();
  note_world(world, &outcome);
  const Figures figures = figures_of(world, options.cholesky, ranks, begin);
  outcome.completed = figures.receives;
  if (rest) outcome.report = report(options, layout, count, figures);
  outcome.good = outcome.complaints.empty();
  return outcome;
}

}  // namespace canele::sim
