// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the shared-memory rings (drivers/shm/ring.hpp) alone: order, room, malformed contents.
//
// One thread, except in the threaded test. Sender and receiver are steps of one loop here, so that a seed repeats every
// interleaving.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "shm_pair.hpp"

namespace canele::drivers::shm {
namespace {

std::size_t random_size(std::mt19937_64& random) {
  static constexpr std::size_t edges[] = {1,
                                          7,
                                          8,
                                          55,
                                          56,
                                          57,
                                          119,
                                          120,
                                          121,
                                          127,
                                          128,
                                          129,
                                          183,
                                          184,
                                          185,
                                          247,
                                          248,
                                          249,
                                          largest_packet - 1,
                                          largest_packet};
  switch (random() % 4) {
    case 0:
      return edges[random() % std::size(edges)];
    case 1:
      return 1 + random() % largest_packet;
    default:
      return 1 + random() % 300;
  }
}

/// Each coming packet is shown once, in order, wherever it lies; also after a time without any poll.
TEST(ShmRing, ShowsWhatIsToCome) {
  constexpr std::size_t most = 12;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    std::uint64_t next = 0, shown = 0, received = 0;  // numbers of packets and pieces
    Pair pair(false, true, &next);
    RxCursor cursor;
    std::deque<Packet> flying;
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t dice = random() % 16;
      if (dice < 7) {
        const std::size_t size = random() % 8 == 0 ? random_size(random) : 1 + random() % 300;
        const Packet packet{size, next};
        if (!pair.send(packet)) continue;
        flying.push_back(packet);
        ++next;
      } else if (dice < 13 && !flying.empty()) {
        ASSERT_TRUE(pair.receive(flying.front()));
        flying.pop_front();
        ++received;
      } else if (dice >= 13) {
        shown = std::max(shown, received);
        for (std::span<const std::byte> bytes; !(bytes = pair.in.show_next(cursor, most)).empty(); ++shown) {
          const auto is_bulk = [&] {
            const Packet& packet = flying[shown - received];
            return packet.size > line_payload && kind_for(packet) == Kind::bulk;
          };
          while (is_bulk()) ++shown;
          const Packet& packet = flying.at(shown - received);
          ASSERT_EQ(bytes.size(), packet.size) << "seed " << seed << ", message " << shown;
          ASSERT_EQ(bytes.back(), expected(packet.seed, packet.size - 1));
        }
      }
    }
    EXPECT_GT(next, 3000u);
  }
}

TEST(ShmRing, KeepsOrderAndBytesOverManyLaps) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    std::uint64_t next = 0, received = 0;
    Pair pair(seed % 2 == 0, seed % 4 < 2, &next);
    std::deque<Packet> flying;
    std::size_t burst = 0;
    while (received < 20000) {
      if (burst == 0) burst = 1 + random() % 200;
      if (random() % 2 == 0) {
        for (; burst > 0; --burst) {
          const Packet packet{random_size(random), next};
          if (!pair.send(packet)) break;
          flying.push_back(packet);
          ++next;
        }
      } else {
        for (; burst > 0 && !flying.empty(); --burst) {
          ASSERT_TRUE(pair.receive(flying.front()));
          flying.pop_front();
          ++received;
        }
      }
      if (flying.empty()) {
        ASSERT_TRUE(pair.in.empty());
      }
      ASSERT_FALSE(pair.out.broken());
    }
    EXPECT_GT(received / line_count, 100u);
  }
}

// The receiver reports its progress lazily. Whatever it has not reported, an empty ring must take the longest packet,
// or the two would wait for each other. Every position of the front and of the end of the data ring is tried.
TEST(ShmRing, EmptyRingAlwaysTakesTheLongestPacket) {
  const std::size_t first[] = {2 * line_size, 2 * line_size, data_size - 2 * largest_record};
  const std::size_t last[] = {front_size, front_size + 2 * largest_record, data_size};
  const bool whole[] = {false, true, true};
  const auto take_longest_after = [](std::size_t before, bool all, const std::uint64_t& taken) {
    Pair pair(false, all, &taken);
    std::size_t left = before;
    while (left > 0) {
      const std::size_t record = left <= largest_record ? left : std::min(largest_record, left - 2 * line_size);
      const Packet packet{std::min(record - record_head(Kind::packet), largest_packet), 0};
      ASSERT_TRUE(pair.send(packet)) << before;
      ASSERT_TRUE(pair.receive(packet));
      left -= record;
    }
    ASSERT_TRUE(pair.out.room(largest_record)) << "after " << before << " bytes";
    ASSERT_TRUE(pair.send({largest_packet, 1}));
    ASSERT_TRUE(pair.receive({largest_packet, 1}));
  };
  for (std::size_t i = 0; i < std::size(whole); ++i) {
    for (std::size_t before = first[i]; before <= last[i]; before += line_size) {
      ASSERT_NO_FATAL_FAILURE(take_longest_after(before, whole[i], 0));
    }
  }
  for (std::size_t lines = 1; lines <= 3 * line_count; ++lines) {
    Pair pair;
    for (std::size_t i = 0; i < lines; ++i) {
      ASSERT_TRUE(pair.send({8, i}));
      ASSERT_TRUE(pair.receive({8, i}));
    }
    ASSERT_TRUE(pair.out.room(0));
    ASSERT_TRUE(pair.out.room(largest_record));
  }
}

// A record begins where any bytes of an earlier one may lie. All bytes that the sender may have left there are made to
// look like the next message. Between packets that chain there are pieces, behind which nothing may be read.
TEST(ShmRing, NoBytesAreTakenForTheNextRecord) {
  Pair pair;
  std::mt19937_64 random(11);
  bool chain = true;
  std::size_t place = 0, named = 0;
  for (std::uint64_t number = 1; number <= 8000; ++number) {
    const std::size_t size = line_payload + 1 + random() % (random() % 4 == 0 ? largest_packet - line_payload : 600);
    const Kind kind = random() % 4 == 0 ? Kind::bulk : Kind::packet;
    std::byte* const to = pair.out.data(size, kind);
    ASSERT_NE(to, nullptr);
    for (std::size_t at = 0; at < data_size; at += line_size) {
      if (!chain || at != place) word_at(*pair.channel, at).store(record_word(number + 1, 8, Kind::packet, true));
    }
    // The packet's own bytes look like it as well.
    const std::uint64_t word = record_word(number, 8, Kind::packet, true);
    for (std::size_t at = record_head(kind) == 0 ? 0 : line_size - record_head(kind); at + 8 <= size; at += line_size) {
      std::memcpy(to + at, &word, sizeof word);
    }
    ASSERT_TRUE(pair.in.empty()) << "nothing is published; message " << number;
    pair.out.publish_data(size, kind, {});
    const Arrival arrival = pair.in.large(pair.in.peek());
    ASSERT_TRUE(arrival.sound) << number;
    ASSERT_EQ(arrival.bytes.size(), size);
    pair.in.pop(arrival);
    chain = arrival.chain;
    named += arrival.named;
    place = round_to_line(static_cast<std::size_t>(arrival.bytes.data() - pair.channel->data) + size) % data_size;
    ASSERT_TRUE(pair.in.empty()) << "message " << number << " of " << size << " bytes";
  }
  EXPECT_GT(named, 2000u);
  EXPECT_LT(named, 6000u);
}

// Tests the line ring in this way, for the lines that hold a packet's bytes instead of a word.
TEST(ShmRing, NoBytesInALineAreTakenForAWord) {
  Pair pair;
  std::mt19937_64 random(12);
  std::vector<bool> holds_bytes(line_count + overhang);
  std::size_t at = 0, in_lines = 0;
  for (std::uint64_t number = 1; number <= 20'000; ++number) {
    // Bytes left by an earlier packet look like the message behind this one.
    for (std::size_t i = 0; i < line_count; ++i) {
      if (holds_bytes[i]) pair.channel->lines[i].word.store(line_word(number + 1, 8));
    }
    const std::size_t size = 1 + random() % largest_in_lines;
    const std::size_t count = lines_for(size);
    std::vector<std::uint64_t> words(lines_for(largest_in_lines) * 8, line_word(number + 1, 8));
    if (size > line_payload) {
      ASSERT_TRUE(pair.out.put_in_lines(words.data(), 16, words.data() + 2, size - 16));
      ASSERT_EQ(pair.in.lines(pair.in.peek()).size(), size);
      EXPECT_EQ(std::memcmp(pair.in.lines(pair.in.peek()).data(), words.data(), size), 0);
      pair.in.pop_lines(size);
      ++in_lines;
    } else {
      std::memcpy(pair.out.line()->payload, words.data(), size);
      pair.out.publish_small(size);
      ASSERT_EQ(pair.in.small(pair.in.peek()).size(), size);
      pair.in.pop_line();
    }
    holds_bytes[at] = false;
    for (std::size_t i = 1; i < count; ++i) holds_bytes[at + i] = true;
    at = at + count >= line_count ? 0 : at + count;
    holds_bytes[at] = false;
    ASSERT_TRUE(pair.in.empty()) << "message " << number << ", line " << at;
  }
  EXPECT_GT(in_lines, 10'000u);
}

// A packet finds its lines in one piece, wherever it begins; full lines stay unchanged.
TEST(ShmRing, APacketInLinesMayRunOverTheEnd) {
  for (std::size_t before = 0; before < line_count; ++before) {
    for (const std::size_t size : {std::size_t{57}, std::size_t{121}, largest_in_lines}) {
      Pair pair;
      for (std::size_t i = 0; i < before; ++i) {
        ASSERT_TRUE(pair.send({8, i}));
        ASSERT_TRUE(pair.receive({8, i}));
      }
      pair.in.tell();
      std::size_t lines = 0, sent = 0;
      for (std::size_t at = before; pair.send_in_lines({size, sent}); ++sent) {
        lines += std::min(lines_for(size), line_count - at);
        at = at + lines_for(size) >= line_count ? 0 : at + lines_for(size);
      }
      EXPECT_LE(lines, line_count);
      EXPECT_GT(lines + lines_for(size), line_count);
      for (; lines < line_count; ++lines, ++sent) ASSERT_TRUE(pair.send({8, sent}));
      EXPECT_FALSE(pair.send({8, sent})) << "from " << before << " on, packets of " << size;
      for (std::size_t i = 0; i < sent; ++i) {
        const std::uint64_t mail = pair.in.peek();
        ASSERT_NE(mail, 0u);
        ASSERT_TRUE(pair.receive({pair.in.small(mail).empty() ? size : 8, i}));
      }
      ASSERT_TRUE(pair.in.empty());
      pair.in.tell();
      EXPECT_TRUE(pair.send({8, sent}));
    }
  }
}

// Data of whole lines begins with a line, and its head is in the line of the word.
TEST(ShmRing, APacketEndsWithALine) {
  for (const std::size_t data : {64, 128, 192, 1024, 4096}) {
    const std::size_t head = data < 255 ? 16 : 20;
    Pair pair;
    ASSERT_TRUE(pair.send({8, 0}));
    ASSERT_TRUE(pair.receive({8, 0}));
    const std::vector<std::byte> bytes(head + data);
    const bool fits = bytes.size() <= largest_in_lines;
    std::byte* const to = fits ? nullptr : pair.out.data(bytes.size(), Kind::packet);
    if (fits) {
      ASSERT_TRUE(pair.out.put_in_lines(bytes.data(), head, bytes.data() + head, data));
    } else {
      pair.out.publish_data(bytes.size(), Kind::packet, {});
    }
    const std::uint64_t mail = pair.in.peek();
    const std::byte* const got = fits ? pair.in.lines(mail).data() : pair.in.large(mail).bytes.data();
    EXPECT_TRUE(fits || got == to);
    EXPECT_EQ((got + head - reinterpret_cast<const std::byte*>(pair.channel.get())) % line_size, 0u) << data;
  }
}

// The room was larger than the packet: the packet is nevertheless where it was written.
TEST(ShmRing, APacketMayBeShorterThanItsRoom) {
  Pair pair;
  for (std::size_t room = line_payload + 1; room < 700; room += 7) {
    std::byte* const to = pair.out.data(room, Kind::packet);
    const std::size_t size = room / 2;
    for (std::size_t i = 0; i < size; ++i) to[i] = expected(0, i);
    pair.out.publish_data(size, Kind::packet, {});
    ASSERT_TRUE(pair.receive({size, 0})) << room;
    ASSERT_TRUE(pair.in.empty());
  }
}

// The ring is full to the last byte. There is no room for an empty word, so a line names the next record.
TEST(ShmRing, AFullRingBreaksTheChainAndALineMendsIt) {
  Pair pair;
  constexpr std::size_t record = 16 * 1024, size = record - record_head(Kind::packet), most = data_size / record;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < most; ++i) {
      std::byte* const to = pair.out.data(size, Kind::packet);
      ASSERT_NE(to, nullptr);
      to[0] = std::byte(round);
      pair.out.publish_data(size, Kind::packet, {});
    }
    EXPECT_EQ(pair.out.data(57, Kind::packet), nullptr);
    for (std::size_t i = 1; i <= most; ++i) {
      const Arrival arrival = pair.in.large(pair.in.peek());
      ASSERT_TRUE(arrival.sound);
      EXPECT_EQ(arrival.chain, i != most);
      EXPECT_EQ(arrival.bytes[0], std::byte(round));
      pair.in.pop(arrival);
    }
    ASSERT_TRUE(pair.in.empty());
    pair.in.tell();
  }
}

/// Sends and receives `count` packets, one after the other. `taken` counts an answer to each of them if `answered`.
/// Returns how far into the data ring the packets have come.
std::size_t extent_of(Pair& pair, std::uint64_t& taken, std::size_t count, std::size_t size, bool answered) {
  std::size_t extent = 0;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(pair.send({size, 0}));
    const Arrival arrival = pair.in.large(pair.in.peek());
    const std::byte* const end = arrival.bytes.data() + arrival.bytes.size();
    extent = std::max(extent, static_cast<std::size_t>(end - pair.channel->data));
    EXPECT_TRUE(pair.receive({size, 0}));
    taken += answered ? 1 : 0;
  }
  return extent;
}

TEST(ShmRing, ShortPacketsThatAreAnsweredStayInTheFront) {
  for (const std::size_t size : {300, 1000, 4096}) {
    std::uint64_t taken = 0;
    Pair pair(false, true, &taken);
    EXPECT_LE(extent_of(pair, taken, 4000, size, true), front_size + round_to_line(size) + line_size) << size;
    EXPECT_GT(extent_of(pair, taken, 4000, size, false), data_size - 2 * size) << "a stream uses all of the ring";
    extent_of(pair, taken, 2 * data_size / size, size, true);  // the laps that are under way
    EXPECT_LE(extent_of(pair, taken, 4000, size, true), front_size + round_to_line(size) + line_size) << size;
  }
}

TEST(ShmRing, LongPacketsUseAllOfTheRing) {
  std::uint64_t taken = 0;
  Pair pair(false, true, &taken);
  EXPECT_GT(extent_of(pair, taken, 400, 12'000, true), data_size - 2 * 12'000);
}

TEST(ShmRing, UsesTheMemoryThatIsThereFromTheStart) {
  constexpr std::size_t there = backed_size - offsetof(Channel, data);
  Pair pair(false, false);
  std::uint64_t taken = 0;
  for (const std::size_t size : {300, 4096, 16'000}) EXPECT_LE(extent_of(pair, taken, 1000, size, false), there);
  std::mt19937_64 random(13);
  for (std::uint64_t i = 0; i < 100'000; ++i) {  // also pieces that begin a line behind the front
    const Packet packet{i % 2 == 0 ? 300 + random() % 64 : random_size(random), i};
    ASSERT_TRUE(pair.send(packet));
    ASSERT_TRUE(pair.receive(packet));
  }
  EXPECT_TRUE(std::all_of(pair.channel->data + there, std::end(pair.channel->data),
                          [](std::byte one) { return one == std::byte{0}; }));
  std::size_t sent = 0;
  while (pair.send({4096, 0})) ++sent;
  EXPECT_GE(sent, front_size / 4096 - 2);
  EXPECT_LE(sent, there / 4096);
}

TEST(ShmRing, AStreamWantsAllOfTheRingOnce) {
  std::uint64_t taken = 0;
  Pair pair(false, false, &taken);
  extent_of(pair, taken, 1000, 1000, true);
  EXPECT_FALSE(pair.out.wants_whole());
  extent_of(pair, taken, 1000, 1000, false);
  EXPECT_TRUE(pair.out.wants_whole());
  EXPECT_FALSE(pair.out.wants_whole());
  extent_of(pair, taken, 1000, 1000, false);
  EXPECT_FALSE(pair.out.wants_whole()) << "it was refused";
  pair.out.whole();
  EXPECT_GT(extent_of(pair, taken, 1000, 1000, false), data_size - 2000);
}

// A number repeats after 2^32 messages, and then an empty word has that number as well.
TEST(ShmRing, AnEmptyWordIsNoMessageWhateverTheNumber) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1} << 32, std::uint64_t{5} << 32}) {
    EXPECT_FALSE(is_record(0, number));
    EXPECT_TRUE(is_record(record_word(number, 1, Kind::packet, true), number));
    EXPECT_FALSE(is_record(record_word(number + 1, 1, Kind::packet, true), number));
  }
}

TEST(ShmRing, TakesExactlyALapOfLinesWhenNothingIsConsumed) {
  Pair pair;
  for (std::size_t i = 0; i < line_count; ++i) ASSERT_TRUE(pair.send({56, i}));
  EXPECT_FALSE(pair.send({1, 0}));
  EXPECT_TRUE(pair.send({57, 0})) << "that takes no line";
  EXPECT_TRUE(pair.receive({56, 0}));
  pair.in.tell();
  EXPECT_TRUE(pair.send({1, 1}));
  EXPECT_FALSE(pair.send({1, 1}));
}

TEST(ShmRing, ReservedRoomThatIsNotPublishedIsFree) {
  Pair pair;
  for (int i = 0; i < 100; ++i) ASSERT_NE(pair.out.data(largest_packet, Kind::bulk), nullptr);
  ASSERT_TRUE(pair.send({largest_packet, 3}));
  ASSERT_TRUE(pair.receive({largest_packet, 3}));
}

TEST(ShmRingThreads, EachPacketOfOneReachesTheOther) {
  Pair pair;
  constexpr std::uint64_t count = 30000;
  std::thread sender([&] {
    std::mt19937_64 random(5);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Packet packet{random_size(random) % 4000 + 1, i};
      while (!pair.send(packet)) std::this_thread::yield();
    }
  });
  std::mt19937_64 random(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Packet packet{random_size(random) % 4000 + 1, i};
    while (!pair.receive(packet)) std::this_thread::yield();
  }
  sender.join();
  EXPECT_TRUE(pair.in.empty());
}

TEST(ShmRing, AnImpossiblePositionIsSeen) {
  for (const std::uint64_t lie : {std::uint64_t{line_count + 1}, ~std::uint64_t{0}, consumed_word(1u << 31, 0),
                                  consumed_word(0, line_size), consumed_word(1, ~std::uint32_t{0})}) {
    Pair pair;
    for (std::size_t i = 0; i < line_count; ++i) ASSERT_TRUE(pair.send({8, i}));
    pair.channel->consumed.store(lie);
    EXPECT_FALSE(pair.send({8, 0}));
    EXPECT_TRUE(pair.out.broken());
  }
  Pair pair;  // a position that goes back
  for (std::size_t i = 0; i < line_count; ++i) ASSERT_TRUE(pair.send({8, i}));
  pair.channel->consumed.store(consumed_word(50, 0));
  for (std::size_t i = 0; i < 50; ++i) ASSERT_TRUE(pair.send({8, i}));
  pair.channel->consumed.store(consumed_word(49, 0));
  EXPECT_FALSE(pair.send({8, 0}));
  EXPECT_TRUE(pair.out.broken());
  Pair odd;  // a position that belongs to no record
  while (odd.send({largest_packet, 1})) continue;
  odd.channel->consumed.store(consumed_word(0, 100));
  EXPECT_FALSE(odd.send({largest_packet, 1}));
  EXPECT_TRUE(odd.out.broken());
}

TEST(ShmRing, NoWordLeadsOutOfTheChannel) {
  std::mt19937_64 random(9);
  std::uint64_t records = 0;
  for (int round = 0; round < 20000; ++round) {
    Pair pair;
    std::size_t place = 0, lines = 0;
    for (std::uint64_t number = 1; number < 100; ++number) {
      // Half the words are nearly right: those are the dangerous ones.
      const std::size_t length = random() % 2 == 0 ? random() % (largest_packet + 2) : random() & 0xffffff;
      word_at(*pair.channel, 0).store(record_word(number, random() % 5000, static_cast<Kind>(random() % 5), true));
      word_at(*pair.channel, place)
          .store(record_word(number, length, static_cast<Kind>(random() % 5), random() % 2 == 0));
      const Descriptor descriptor{static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 2 * place),
                                  static_cast<std::uint32_t>(length),
                                  random() % 2 == 0 ? 1 + random() % 3 : random(),
                                  {random(), random()}};
      Line& line = pair.channel->lines[lines % line_count];
      std::memcpy(line.payload, &descriptor, sizeof descriptor);
      line.word.store(line_word(number - random() % 2, random() % 2 == 0 ? names_a_record : random() & 0xff));
      const std::uint64_t mail = pair.in.peek();
      if (mail == 0) break;
      ASSERT_LE(pair.in.small(mail).size(), line_payload);
      if (const auto bytes = pair.in.lines(mail); !bytes.empty()) {
        ASSERT_GE(bytes.data(), reinterpret_cast<const std::byte*>(line.payload));
        ASSERT_LE(bytes.data() + bytes.size(), reinterpret_cast<const std::byte*>(std::end(pair.channel->lines)));
      }
      const Arrival arrival = pair.in.large(mail);
      if (!arrival.sound) break;
      ASSERT_GT(arrival.bytes.size(), 0u);
      ASSERT_LE(arrival.bytes.size(), largest_packet);
      ASSERT_GE(arrival.bytes.data(), pair.channel->data);
      ASSERT_LE(arrival.bytes.data() + arrival.bytes.size(), pair.channel->data + data_size);
      place = round_to_line(static_cast<std::size_t>(arrival.bytes.data() - pair.channel->data) + arrival.bytes.size());
      place %= data_size;
      lines += arrival.named;
      pair.in.pop(arrival);
      ++records;
    }
  }
  EXPECT_GT(records, 1000u);
}

TEST(ShmRing, CopiesEverySize) {
  for (std::size_t size = 0; size <= largest_in_lines; ++size) {
    std::vector<std::byte> from(size + 1), to(size + 1, std::byte{0xee});
    for (std::size_t i = 0; i < size; ++i) from[i] = expected(size, i);
    for (const auto copy : {copy_small, copy_some}) {
      std::fill(to.begin(), to.end(), std::byte{0xee});
      copy(to.data(), from.data(), size);
      EXPECT_EQ(std::memcmp(from.data(), to.data(), size), 0);
      EXPECT_EQ(to[size], std::byte{0xee});
    }
  }
}

// Sleep and wake-up on a model of the machine: each side has a store buffer that drains at any time. Every interleaving
// is visited. (A stress test seldom meets the one that matters, and a model without store buffers never does.)
class SleepModel {
 public:
  enum class Fence { none, sender, membarrier };
  explicit SleepModel(Fence fence) : fence_(fence) {}
  /// Returns true if in some interleaving the receiver sleeps, the message is there, and no doorbell rings.
  bool loses() { return visit({}); }

 private:
  struct State {
    int sender = 0, receiver = 0;  // next step of each
    bool line_buffered = false, line = false, parked_buffered = false, parked = false;
    bool saw_parked = false, rung = false, asleep = false;
  };

  bool visit(State state) {
    bool lost = false;
    const auto go = [&](auto change) {
      State next = state;
      change(next);
      lost = lost || visit(next);
    };
    if (state.line_buffered) go([](State& s) { s.line_buffered = false, s.line = true; });
    if (state.parked_buffered) go([](State& s) { s.parked_buffered = false, s.parked = true; });
    if (state.sender == 0) go([](State& s) { s.sender = 1, s.line_buffered = true; });
    if (state.sender == 1 && (fence_ != Fence::sender || !state.line_buffered)) {
      go([](State& s) { s.sender = 2, s.saw_parked = s.parked; });
    }
    if (state.sender == 2) go([](State& s) { s.sender = 3, s.rung = s.saw_parked; });
    if (state.receiver == 0) go([](State& s) { s.receiver = 1, s.parked_buffered = true; });
    // The receiver's own store is a fence in any case; membarrier drains the sender's buffer, too.
    if (state.receiver == 1 && !state.parked_buffered) {
      go([this](State& s) {
        s.receiver = 2;
        if (fence_ == Fence::membarrier && s.line_buffered) s.line_buffered = false, s.line = true;
      });
    }
    if (state.receiver == 2) go([](State& s) { s.receiver = 3, s.asleep = !s.line; });
    const bool over = state.sender == 3 && state.receiver == 3 && !state.line_buffered;
    return lost || (over && state.asleep && !state.rung);
  }

  const Fence fence_;
};

TEST(ShmSleepModel, OnlyAFenceOrMembarrierKeepsEveryWakeUp) {
  EXPECT_TRUE(SleepModel(SleepModel::Fence::none).loses()) << "the model does not see the race that it is for";
  EXPECT_FALSE(SleepModel(SleepModel::Fence::sender).loses());
  EXPECT_FALSE(SleepModel(SleepModel::Fence::membarrier).loses());
}

}  // namespace
}  // namespace canele::drivers::shm
