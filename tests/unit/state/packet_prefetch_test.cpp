// SPDX-License-Identifier: BSD-3-Clause
//
// Prefetching of packets: over the end of one into the next, and through whatever a peer writes meanwhile.
//
// Other threads only create the engines. A prefetch into the cache cannot be observed; its distance can.
#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "comm/wire/wire.hpp"
#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

class PacketPrefetchTest : public testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;
  static constexpr std::uint32_t farthest = 24;

  static Bytes packet(std::size_t chunks) {
    Bytes out(chunks * comm::wire::chunk_size(8));
    std::byte* at = out.data();
    for (std::size_t i = 0; i < chunks; ++i) {
      at = comm::wire::put_head(at, {i, 0, 0, comm::wire::Type::eager, 0}, 8) + 8;
    }
    return out;
  }
  /// Takes all chunks of a packet. Returns the least that was known ahead of one of them.
  std::uint32_t take(const Bytes& packet, std::size_t chunks) {
    packet_prefetch_.begin(engine_.matcher, peer_, packet);
    std::uint32_t least = packet_prefetch_.known();
    for (std::size_t i = 1; i < chunks; ++i) {
      packet_prefetch_.step(engine_.matcher);
      least = std::min(least, packet_prefetch_.known());
    }
    packet_prefetch_.end();
    return least;
  }

  /// Connects to a rank, by a message to it.
  comm::Peer& meet(int rank) {
    canele_request_t send{}, receive{};
    EXPECT_EQ(canele_irecv(sessions_[rank], 1, 1, CANELE_TAG_EXACT, nullptr, 0, &receive), CANELE_OK);
    EXPECT_EQ(canele_isend(sessions_[1], rank, 1, nullptr, 0, &send), CANELE_OK);
    EXPECT_TRUE(job_.finish(receive) && job_.finish(send));
    return engine_.peer(rank);
  }

  LocalJob job_;
  std::vector<canele_session_t*> sessions_ = job_.open("ahead");
  comm::Engine& engine_ = job_.engine(1);
  comm::Peer& peer_ = meet(0);
  comm::PacketPrefetch packet_prefetch_;
};

TEST_F(PacketPrefetchTest, GoesOnFromPacketToPacket) {
  const Bytes one = packet(1), many = packet(64);
  std::vector<std::pair<Bytes, std::size_t>> row;
  for (int i = 0; i < 40; ++i) i % 3 == 0 ? row.emplace_back(many, 64) : row.emplace_back(one, 1);
  std::size_t shown = 0;
  for (std::size_t i = 0; i + 3 < row.size(); ++i) {
    for (; shown < i + 4; ++shown) packet_prefetch_.show(peer_, row[shown].first);
    EXPECT_EQ(take(row[i].first, row[i].second), farthest) << "packet " << i;
  }
}

TEST_F(PacketPrefetchTest, LooksNoFurtherThanWhatIsShown) {
  const Bytes a = packet(2), b = packet(1);
  packet_prefetch_.show(peer_, a);
  packet_prefetch_.show(peer_, b);
  EXPECT_EQ(take(a, 2), 1u);
  EXPECT_EQ(take(b, 1), 0u);
  EXPECT_EQ(take(a, 2), 0u) << "it was not shown: its end is";
}

TEST_F(PacketPrefetchTest, ForgetsWhatDoesNotCome) {
  const Bytes shown = packet(1), other = packet(3), gone = packet(64);
  for (int i = 0; i < 100; ++i) packet_prefetch_.show(peer_, gone);  // more than it remembers
  packet_prefetch_.show(peer_, shown);
  EXPECT_EQ(take(other, 3), 0u);
  packet_prefetch_.show(peer_, shown);
  EXPECT_EQ(take(shown, 1), 0u);
  packet_prefetch_.show(peer_, shown);
  packet_prefetch_.show(meet(1), gone);
  EXPECT_EQ(take(shown, 1), 0u) << "another peer's came after it";
}

/// The memory of what was shown is freed, as that of a failed peer's packets is: AddressSanitizer would report an
/// access.
TEST_F(PacketPrefetchTest, ForgetsWhatIsNoMemoryAnyMore) {
  const Bytes in_hand = packet(2);
  for (const bool while_in_hand : {false, true}) {
    auto gone = std::make_unique<Bytes>(packet(8));
    packet_prefetch_.show(peer_, in_hand);
    packet_prefetch_.show(peer_, *gone);
    if (while_in_hand) packet_prefetch_.begin(engine_.matcher, peer_, in_hand);
    packet_prefetch_.forget();
    gone.reset();
    if (!while_in_hand) packet_prefetch_.begin(engine_.matcher, peer_, in_hand);
    packet_prefetch_.step(engine_.matcher);
    packet_prefetch_.end();
    EXPECT_EQ(take(packet(64), 40), farthest);
  }
}

/// The packet's bytes change between the reads, so that it has more chunks, fewer, or none.
TEST_F(PacketPrefetchTest, SurvivesWhateverThePeerWrites) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Bytes> row;
    for (int i = 0; i < 50; ++i) row.push_back(packet(1 + random() % 20));
    std::size_t shown = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (; shown < std::min(row.size(), i + 1 + random() % 12); ++shown) packet_prefetch_.show(peer_, row[shown]);
      packet_prefetch_.begin(engine_.matcher, peer_, row[i]);
      for (std::size_t steps = random() % 20; steps > 0; --steps) {
        Bytes& other = row[random() % row.size()];
        other[random() % other.size()] = static_cast<std::byte>(random());
        packet_prefetch_.step(engine_.matcher);
      }
      packet_prefetch_.end();
    }
    const Bytes fresh = packet(64);
    EXPECT_EQ(take(fresh, 40), farthest) << "seed " << seed << ": a packet later all is right again";
  }
}

}  // namespace
}  // namespace canele::test
