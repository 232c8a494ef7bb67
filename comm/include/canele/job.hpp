// SPDX-License-Identifier: BSD-3-Clause
//
// job.hpp - the other ranks of the job in C++20: a thin layer on <canele/job.h>, beside <canele/canele.hpp>.
//
// Threads: any, as in job.h.
//
//     canele::on_peer(engine, [](canele_engine_t*, int rank, int, const char* why, void*) { give_up(rank, why); });
//     canele::publish(engine, "port", canele::one(port));  // on each rank
//     canele::exchange(engine);
//     int port = canele::lookup_as<int>(engine, rank, "port").value();
#ifndef CANELE_JOB_HPP
#define CANELE_JOB_HPP

#include <canele/job.h>

#include <canele/canele.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace canele {

/// Returns what this rank knows of `rank`: see canele_peer_state. Throws canele::error.
inline enum canele_peer_state peer_state(const engine& of, int rank) {
  const int state = canele_peer_state(of.native(), rank);
  if (state < 0) detail::refused(state, "canele_peer_state");
  return static_cast<enum canele_peer_state>(state);
}

/// Reports each peer that ends to `callback` (nullptr: no longer): see canele_on_peer. `callback` must not throw.
/// Throws canele::error.
inline void on_peer(engine& of, canele_peer_fn callback, void* argument = nullptr) {
  detail::check(canele_on_peer(of.native(), callback, argument), "canele_on_peer");
}

/// Keeps a copy of the objects of a contiguous range under a key for the next exchange: see canele_publish.
/// canele::one(object) is a range of one. Throws canele::error.
template <std::ranges::contiguous_range Range>
requires std::ranges::sized_range<Range> && std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>
void publish(engine& of, const std::string& key, const Range& range) {
  detail::check(canele_publish(of.native(), key.c_str(), std::ranges::data(range), detail::byte_size(range)),
                "canele_publish");
}

/// Gives every rank the values that every rank has published: see canele_exchange. Blocks until all ranks have called
/// it. Throws canele::error.
inline void exchange(engine& of) { detail::check(canele_exchange(of.native(), UINT64_MAX), "canele_exchange"); }
/// Like the other exchange, with a deadline. Returns false if it came first; the next call continues the exchange.
[[nodiscard]] inline bool exchange(engine& of, std::uint64_t deadline) {
  const int code = canele_exchange(of.native(), deadline);
  if (code != CANELE_ETIMEOUT) detail::check(code, "canele_exchange");
  return code == CANELE_OK;
}

/// Returns the value that a rank had published under this key at its last exchange, or nothing: see canele_lookup.
/// Throws canele::error.
inline std::optional<std::vector<std::byte>> lookup(const engine& of, int rank, const std::string& key) {
  std::vector<std::byte> value;
  while (true) {  // another thread may exchange meanwhile
    std::size_t size = value.size();
    const int code = canele_lookup(of.native(), rank, key.c_str(), value.data(), &size);
    if (code == CANELE_ENOENT) return std::nullopt;
    if (code != CANELE_ETRUNC) detail::check(code, "canele_lookup");
    value.resize(size);
    if (code == CANELE_OK) return value;
  }
}

/// Returns the value as an object that was published as one. Throws canele::error, with CANELE_EINVAL if the value has
/// another size.
template <typename Object>
requires std::is_trivially_copyable_v<Object> && std::is_default_constructible_v<Object> std::optional<Object>
lookup_as(const engine& of, int rank, const std::string& key) {
  Object object{};
  std::size_t size = sizeof object;
  const int code = canele_lookup(of.native(), rank, key.c_str(), &object, &size);
  if (code == CANELE_ENOENT) return std::nullopt;
  if (code != CANELE_ETRUNC) detail::check(code, "canele_lookup");
  if (size == sizeof object) return object;
  detail::fail(CANELE_EINVAL,
               "canele_lookup: \"" + key + "\" of rank " + std::to_string(rank) + " has " + std::to_string(size) +
                   " bytes; expected: " + std::to_string(sizeof object),
               rank);
}

/// Returns the ranks of this host in ascending order: see canele_local_ranks. Only after an exchange. Throws
/// canele::error.
inline std::vector<int> local_ranks(const engine& of) {
  const int size = canele_local_size(of.native());
  if (size < 0) detail::refused(size, "canele_local_size");
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::size_t count = 0;
  detail::check(canele_local_ranks(of.native(), ranks.data(), ranks.size(), &count), "canele_local_ranks");
  ranks.resize(count);
  return ranks;
}

/// The host of a rank: see canele_rank_host.
struct host {
  int index = 0;
  std::string name;
};

/// Returns the host of a rank. Only after an exchange. Throws canele::error.
inline host rank_host(const engine& of, int rank) {
  char name[CANELE_HOST_NAME_SIZE];
  host found;
  detail::check(canele_rank_host(of.native(), rank, &found.index, name, sizeof name), "canele_rank_host");
  found.name = name;
  return found;
}

}  // namespace canele

#endif
