// SPDX-License-Identifier: BSD-3-Clause
//
// Published values: limits, encoding, decoding of what another rank may send, and the hosts of ranks.
#include "comm/bootstrap/published.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/bootstrap/limits.hpp"

namespace canele::comm {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::optional<std::span<const std::byte>> found) {
  if (!found) return "(nothing)";
  return {reinterpret_cast<const char*>(found->data()), found->size()};
}

Place at(std::uint32_t local_rank, std::uint32_t local_size, std::string host, std::uint64_t machine = 7) {
  return {local_rank, local_size, machine, std::move(host)};
}

ExchangedValues received(const std::vector<Blob>& blobs) {
  std::vector<std::size_t> lengths;
  Blob all;
  for (const Blob& blob : blobs) {
    lengths.push_back(blob.size());
    all.insert(all.end(), blob.begin(), blob.end());
  }
  ExchangedValues values(lengths);
  std::copy(all.begin(), all.end(), values.bytes().begin());
  return values;
}

TEST(Published, ValuesComeBack) {
  PublishedValues first, second;
  std::string why;
  ASSERT_TRUE(first.put("a", bytes_of("one"), &why));
  ASSERT_TRUE(first.put("b", bytes_of(""), &why));
  ASSERT_TRUE(first.put("a", bytes_of("another"), &why));
  ASSERT_TRUE(second.put("a", bytes_of("two"), &why));
  ExchangedValues values = received({first.encode(at(0, 2, "x")), second.encode(at(1, 2, "x"))});
  ASSERT_EQ(values.read(), -1);
  EXPECT_EQ(text_of(values.find(0, "a")), "another") << "the later value wins";
  EXPECT_EQ(text_of(values.find(0, "b")), "");
  EXPECT_EQ(text_of(values.find(1, "a")), "two");
  EXPECT_EQ(values.find(1, "b"), std::nullopt);
}

TEST(Published, LimitsAreReached) {
  PublishedValues values;
  std::string why;
  EXPECT_FALSE(values.put("", bytes_of("x"), &why));
  EXPECT_FALSE(values.put(std::string(longest_key + 1, 'k'), bytes_of("x"), &why));
  EXPECT_TRUE(values.put(std::string(longest_key, 'k'), bytes_of("x"), &why)) << why;
  const std::string longest(longest_blob, 'v');
  EXPECT_FALSE(values.put("v", bytes_of(longest + "v"), &why));
  int put = 0;
  while (values.put(std::to_string(put), bytes_of(longest), &why)) ++put;
  EXPECT_EQ(put, 3) << "the fourth exceeds the limit of a rank by the lengths and the keys";
  EXPECT_NE(why.find(std::to_string(longest_published)), std::string::npos) << why;
  const std::size_t before = values.bytes();
  EXPECT_TRUE(values.put("0", bytes_of("short"), &why)) << "a value that is replaced makes room";
  EXPECT_EQ(values.bytes(), before - longest_blob + 5);
  EXPECT_TRUE(values.put("3", bytes_of(longest), &why)) << why;
  EXPECT_LE(values.encode(at(0, 1, std::string(1000, 'h'))).size(), longest_encoded);
}

TEST(Published, EveryCutIsMalformed) {
  PublishedValues values;
  std::string why;
  ASSERT_TRUE(values.put("key", bytes_of("value"), &why));
  const Blob whole = values.encode(at(0, 1, "host"));
  int well = 0;
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    ExchangedValues cut = received({Blob(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))});
    if (cut.read() == -1) ++well;
  }
  EXPECT_EQ(well, 2) << "the place alone, and the place with the value";
}

TEST(Published, AWrongPlaceIsMalformed) {
  const PublishedValues none;
  const auto malformed = [&](const Place& place) { return received({none.encode(place)}).read() == 0; };
  EXPECT_FALSE(malformed(at(0, 1, "host")));
  EXPECT_TRUE(malformed(at(0, 0, "host")));
  EXPECT_TRUE(malformed(at(1, 1, "host")));
  EXPECT_TRUE(malformed(at(0, 2, "host"))) << "more ranks than the job has";
  EXPECT_TRUE(malformed(at(0, 1, std::string("ho\0st", 5))));
  Blob twice = none.encode(at(0, 1, "host"));
  const Blob again = twice;
  twice.insert(twice.end(), again.begin(), again.end());
  EXPECT_EQ(received({twice}).read(), 0);
}

std::vector<int> hosts(const std::vector<Place>& places) {
  const PublishedValues none;
  std::vector<Blob> blobs;
  for (const Place& place : places) blobs.push_back(none.encode(place));
  ExchangedValues values = received(blobs);
  EXPECT_EQ(values.read(), -1);
  std::vector<int> found;
  for (std::size_t rank = 0; rank < places.size(); ++rank) found.push_back(values.host_of(static_cast<int>(rank)));
  return found;
}

using Ints = std::vector<int>;

TEST(Published, HostsAreThoseOfTheLauncher) {
  EXPECT_EQ(hosts({at(0, 2, "a"), at(1, 2, "a"), at(0, 1, "b")}), (Ints{0, 0, 1}));
  EXPECT_EQ(hosts({at(0, 2, "b"), at(0, 2, "a"), at(1, 2, "b"), at(1, 2, "a")}), (Ints{0, 1, 0, 1})) << "in turn";
  EXPECT_EQ(hosts({at(0, 1, "a", 1), at(0, 1, "a", 2)}), (Ints{0, 1})) << "two machines of one name";
  EXPECT_EQ(hosts({at(0, 1, "a"), at(0, 1, "a")}), (Ints{0, 1})) << "one machine that the launcher counts as two hosts";
  EXPECT_EQ(hosts({at(0, 2, "a"), at(0, 2, "a"), at(1, 2, "a"), at(1, 2, "a")}), (Ints{0, 1, 0, 1}));
}

TEST(Published, NamesOfHosts) {
  const PublishedValues none;
  const std::string longest(longest_host_name, 'h');
  ExchangedValues values =
      received({none.encode(at(0, 1, longest + "cut")), none.encode(at(0, 2, "")), none.encode(at(1, 2, ""))});
  ASSERT_EQ(values.read(), -1);
  EXPECT_EQ(values.host_name(0), longest);
  EXPECT_EQ(values.host_name(1), "localhost");
  EXPECT_EQ(values.ranks_of(0), Ints{0});
  EXPECT_EQ(values.ranks_of(1), (Ints{1, 2}));
}

}  // namespace
}  // namespace canele::comm
