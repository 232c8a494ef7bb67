// SPDX-License-Identifier: BSD-3-Clause
//
// Encoding and decoding of published values, and the hosts of the ranks.
#include "comm/bootstrap/published.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

#include "comm/bootstrap/limits.hpp"

namespace canele::comm {
namespace {

/// Lengths before each key and value.
struct Head {
  std::uint16_t key;
  std::uint32_t value;
};
constexpr std::size_t head_size = sizeof(Head::key) + sizeof(Head::value);

void append(Blob& blob, const void* bytes, std::size_t size) {
  const std::size_t at = blob.size();
  blob.resize(at + size);
  if (size != 0) std::memcpy(blob.data() + at, bytes, size);
}

template <typename T>
void append(Blob& blob, const T& value) {
  append(blob, &value, sizeof value);
}

template <typename T>
bool take(std::span<const std::byte>& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return true;
}

void append_entry(Blob& blob, std::string_view key, std::span<const std::byte> value) {
  append(blob, static_cast<std::uint16_t>(key.size()));
  append(blob, static_cast<std::uint32_t>(value.size()));
  append(blob, key.data(), key.size());
  append(blob, value.data(), value.size());
}

Blob encoded(const Place& place) {
  Blob blob;
  append(blob, place.local_rank);
  append(blob, place.local_size);
  append(blob, place.machine);
  const std::string_view name = place.host.empty() ? std::string_view("localhost") : std::string_view(place.host);
  append(blob, name.data(), std::min(name.size(), longest_host_name));
  return blob;
}

struct Entry {
  std::string_view key;
  std::span<const std::byte> value;
};

/// Reads an entry from the front. Returns false if the bytes are malformed.
bool take_entry(std::span<const std::byte>& bytes, Entry& entry) {
  Head head{};
  if (!take(bytes, head.key) || !take(bytes, head.value)) return false;
  if (head.key == 0 || head.key > longest_key || head.value > longest_blob) return false;
  if (bytes.size() < std::size_t{head.key} + head.value) return false;
  entry.key = {reinterpret_cast<const char*>(bytes.data()), head.key};
  entry.value = bytes.subspan(head.key, head.value);
  bytes = bytes.subspan(std::size_t{head.key} + head.value);
  return true;
}

bool decode(std::span<const std::byte> bytes, std::size_t ranks, Place& place) {
  if (!take(bytes, place.local_rank) || !take(bytes, place.local_size) || !take(bytes, place.machine)) return false;
  if (place.local_size == 0 || place.local_size > ranks || place.local_rank >= place.local_size) return false;
  if (bytes.empty() || bytes.size() > longest_host_name) return false;
  place.host.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return place.host.find('\0') == std::string::npos;
}

}  // namespace

bool PublishedValues::put(std::string_view key, std::span<const std::byte> value, std::string* why) {
  if (!check_entry(key, value.size(), why)) return false;
  const auto found = values_.find(key);
  const std::size_t before = found != values_.end() ? head_size + key.size() + found->second.size() : 0;
  const std::size_t after = bytes_ - before + head_size + key.size() + value.size();
  if (after > longest_published) {
    *why = "this rank would have published " + std::to_string(after) + " bytes with '" + std::string(key) +
           "'; at most " + std::to_string(longest_published) + ", keys and values of a rank together, are allowed";
    return false;
  }
  Blob copy(value.begin(), value.end());
  if (found != values_.end())
    found->second.swap(copy);
  else
    values_.emplace(std::string(key), std::move(copy));
  bytes_ = after;
  return true;
}

Blob PublishedValues::encode(const Place& place) const {
  Blob blob;
  blob.reserve(longest_encoded - longest_published + bytes_);
  append_entry(blob, Place::key, encoded(place));
  for (const auto& [key, value] : values_) append_entry(blob, key, value);
  return blob;
}

ExchangedValues::ExchangedValues(std::vector<std::size_t> lengths)
    : lengths_(std::move(lengths)), offsets_(lengths_.size()), hosts_(lengths_.size()) {
  std::exclusive_scan(lengths_.begin(), lengths_.end(), offsets_.begin(), std::size_t{0});
  bytes_.resize(std::accumulate(lengths_.begin(), lengths_.end(), std::size_t{0}));
}

std::span<const std::byte> ExchangedValues::of(std::size_t rank) const {
  return std::span(bytes_).subspan(offsets_[rank], lengths_[rank]);
}

int ExchangedValues::read() {
  std::vector<Place> places(lengths_.size());
  for (std::size_t rank = 0; rank < lengths_.size(); ++rank) {
    std::span<const std::byte> rest = of(rank);
    bool placed = false;
    Entry entry;
    while (!rest.empty()) {
      if (!take_entry(rest, entry)) return static_cast<int>(rank);
      if (entry.key != Place::key) continue;
      if (placed || !decode(entry.value, lengths_.size(), places[rank])) return static_cast<int>(rank);
      placed = true;
    }
    if (!placed) return static_cast<int>(rank);
  }
  find_hosts(places);
  return -1;
}

/// Ranks are on one host if name, machine and number of ranks there agree, and their local ranks differ. So the hosts
/// are those of the launcher, also where several have one name.
void ExchangedValues::find_hosts(const std::vector<Place>& places) {
  using Identity = std::tuple<std::string, std::uint64_t, std::uint32_t>;
  std::map<Identity, std::vector<int>> hosts;
  std::map<std::pair<Identity, std::uint32_t>, std::size_t> seen;
  names_.clear();
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Place& place = places[rank];
    const Identity identity{place.host, place.machine, place.local_size};
    std::vector<int>& alike = hosts[identity];
    const std::size_t which = seen[{identity, place.local_rank}]++;
    if (which == alike.size()) {
      alike.push_back(static_cast<int>(names_.size()));
      names_.push_back(place.host);
    }
    hosts_[rank] = alike[which];
  }
}

std::optional<std::span<const std::byte>> ExchangedValues::find(int rank, std::string_view key) const {
  std::span<const std::byte> rest = of(static_cast<std::size_t>(rank));
  Entry entry;
  while (!rest.empty() && take_entry(rest, entry)) {
    if (entry.key == key) return entry.value;
  }
  return std::nullopt;
}

std::vector<int> ExchangedValues::ranks_of(int host) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    if (hosts_[rank] == host) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace canele::comm
