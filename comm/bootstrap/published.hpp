// SPDX-License-Identifier: BSD-3-Clause
//
// The values that ranks publish under keys: those of this rank, encoded for the other ranks, and those of all ranks.
//
// api/exchange.hpp sends the encoded values of each rank to all ranks. No state but the objects; an object belongs to
// one thread at a time, and ExchangedValues that have been read may be shared by threads.
//
//     values of a rank: │ length of key (u16) │ length of value (u32) │ key │ value │ next … │    little-endian hosts
//
// An exchange replaces everything that a rank has received before, so no entry is ever superseded in place.
//
// Rejected: an index of all keys. A rank publishes few keys, and a lookup reads those of one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bootstrap/bootstrap.hpp"

namespace canele::comm {

/// Bytes that one rank may publish, keys and values together.
inline constexpr std::size_t longest_published = std::size_t{256} << 10;
/// Bytes of the longest name of a host; a longer one is cut.
inline constexpr std::size_t longest_host_name = 255;
/// Bytes that one rank may encode: its values, and its place.
inline constexpr std::size_t longest_encoded = longest_published + 512;

/// The place of a rank, which each rank publishes beside the program's values.
struct Place {
  std::uint32_t local_rank = 0, local_size = 1;
  std::uint64_t machine = 0;  ///< differs between machines, even if their names are equal; 0: unknown
  std::string host;

  static constexpr std::string_view key = "canele.place";
};

/// The values of this rank.
class PublishedValues {
 public:
  /// Stores a value; replaces the earlier one of this key. Returns false and sets *why if it exceeds a limit.
  bool put(std::string_view key, std::span<const std::byte> value, std::string* why);
  /// Returns the bytes of all keys and values.
  std::size_t bytes() const { return bytes_; }
  /// Encodes the values of this rank, which is at `place`.
  Blob encode(const Place& place) const;

 private:
  std::map<std::string, Blob, std::less<>> values_;
  std::size_t bytes_ = 0;
};

/// The values of all ranks.
class ExchangedValues {
 public:
  /// `lengths`: how many bytes each rank has encoded. Allocates the memory for them.
  explicit ExchangedValues(std::vector<std::size_t> lengths);

  const std::vector<std::size_t>& lengths() const { return lengths_; }
  std::span<std::byte> bytes() { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  /// Checks the bytes that have arrived, and finds the hosts. Returns a rank whose bytes are malformed, or -1. Call it
  /// once, before the functions below.
  int read();

  /// Returns the value that `rank` has published, or nothing.
  std::optional<std::span<const std::byte>> find(int rank, std::string_view key) const;
  /// Returns the index of a rank's host. Hosts are numbered from 0 in the order of their lowest ranks.
  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  const std::string& host_name(int host) const { return names_[static_cast<std::size_t>(host)]; }
  /// Returns the ranks of a host, in ascending order.
  std::vector<int> ranks_of(int host) const;

 private:
  std::span<const std::byte> of(std::size_t rank) const;
  void find_hosts(const std::vector<Place>& places);

  std::vector<std::size_t> lengths_, offsets_;
  Blob bytes_;
  std::vector<int> hosts_;
  std::vector<std::string> names_;
};

}  // namespace canele::comm
