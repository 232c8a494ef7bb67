// SPDX-License-Identifier: BSD-3-Clause
//
// Factorisation: puts graph, threads and messages together.
//
// The time of a run ends at a barrier, when the slowest rank has finished its last message.
#include "factorisation.hpp"

#include <stdexcept>
#include <string_view>

#include "graph.hpp"

namespace canele::cholesky {
namespace {

/// Reads a counter of the engine. Throws if the counter table has no such name.
std::uint64_t counter(canele::engine& engine, std::string_view name) {
  for (int index = 0; index < canele_counter_count(); ++index) {
    if (name != canele_counter_name(index)) continue;
    std::uint64_t value = 0;
    canele::detail::check(canele_counter_read(engine.native(), index, -1, nullptr, &value), "canele_counter_read");
    return value;
  }
  throw std::runtime_error("the library has no counter " + std::string(name));
}

/// Returns a tile of the factor: one of this rank, or one that has been received.
ConstBlock factor_tile(const Tiles& tiles, const Exchange& exchange, TileIndex tile) {
  const Layout& layout = tiles.layout();
  const double* values = tiles.has(tile) ? tiles.at(tile).values : exchange.values(tile);
  return {values, layout.extent(tile.row), layout.extent(tile.column)};
}

void compute(const Tiles& tiles, const Exchange& exchange, const Task& task) {
  const auto [row, column] = task.tile;
  const Block target = tiles.at(task.tile);
  if (task.finishes()) {
    row == column ? factor(target) : solve(factor_tile(tiles, exchange, {column, column}), target);
  } else if (row == column) {
    update_diagonal(factor_tile(tiles, exchange, {row, task.step}), target);
  } else {
    update(factor_tile(tiles, exchange, {row, task.step}), factor_tile(tiles, exchange, {column, task.step}), target);
  }
}

}  // namespace

Tiles::Tiles(const Layout& layout, int rank)
    : layout_(layout), rank_(rank), memory_(static_cast<std::size_t>(layout.places())) {
  for (int row = 0; row < layout.tiles(); ++row) {
    for (int column = 0; column <= row; ++column) {
      if (layout.owner({row, column}) != rank) continue;
      const auto rows = static_cast<std::size_t>(layout.extent(row));
      const auto columns = static_cast<std::size_t>(layout.extent(column));
      memory_[place({row, column})] = std::make_unique<double[]>(rows * columns);
    }
  }
}

void Tiles::fill(std::uint64_t seed) {
  for (int row = 0; row < layout_.tiles(); ++row) {
    for (int column = 0; column <= row; ++column) {
      if (!has({row, column})) continue;
      cholesky::fill(seed, layout_.size(), layout_.first(row), layout_.first(column), at({row, column}));
    }
  }
}

RankReport factorise(canele::engine& engine, canele::session& session, Tiles& tiles, const RunOptions& options) {
  Graph graph(tiles.layout(), tiles.rank());
  Scheduler* running = nullptr;
  Exchange exchange(
      session, tiles.layout(), tiles.rank(), options.way, options.look_ahead,
      {[&](TileIndex tile) { running->available(tile); }, [&](const std::string& problem) { running->stop(problem); }});
  Scheduler scheduler(graph, {[&](const Task& task) { compute(tiles, exchange, task); },
                              [&](const Task& task) {
                                const Block tile = tiles.at(task.tile);
                                exchange.send(
                                    task.tile, tile.values,
                                    static_cast<std::size_t>(tile.rows) * static_cast<std::size_t>(tile.columns));
                              },
                              [&](int column) { exchange.release(column); }});
  running = &scheduler;
  RankReport report;
  report.bytes_sent = counter(engine, "bytes_sent");
  report.messages_sent = counter(engine, "messages_sent");
  report.bytes_forwarded = counter(engine, "bytes_forwarded");
  session.barrier();
  const std::uint64_t start = engine.now();
  exchange.start();
  const std::string problem = scheduler.run(options.threads);
  if (!problem.empty()) engine.abort(1, problem.c_str());
  exchange.finish();
  session.barrier();
  report.seconds = static_cast<double>(engine.now() - start) / 1e9;
  report.times = scheduler.times();
  report.bytes_sent = counter(engine, "bytes_sent") - report.bytes_sent;
  report.messages_sent = counter(engine, "messages_sent") - report.messages_sent;
  report.bytes_forwarded = counter(engine, "bytes_forwarded") - report.bytes_forwarded;
  report.wide_sends = exchange.wide_sends();
  return report;
}

}  // namespace canele::cholesky
