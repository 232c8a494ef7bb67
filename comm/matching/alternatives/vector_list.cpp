// SPDX-License-Identifier: BSD-3-Clause
//
// VectorList: eight entries in a block, with a row for each field, so that eight are compared at once. From M. Dosanjh,
// 2017, section 5.4, but wider: eight lanes of 64 bits instead of sixteen of 32.
//
// Masks are stored with the receives, so every class is one comparison, including masks of a part of the tag.
//
//   receives: │ 8 nodes │ live next prev │ 8 tags │ 8 masks │ 8 whos │ 8 masks │  6 lines, 5 read where none fits
//   messages: │ 8 nodes │ live next prev │ 8 tags │ 8 whos │                      4 lines, 3 read
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <type_traits>

#include "comm/matching/alternatives/lane_list.hpp"
#include "comm/matching/alternatives/structures.hpp"
#include "comm/matching/alternatives/vector_walk.hpp"

namespace canele::comm::matching {
namespace {

struct PostedVector : Lanes<PostedVector, 8> {
  static constexpr unsigned lines_searched = 5;
  alignas(64) std::uint64_t tags[lanes] = {}, masks[lanes] = {}, whos[lanes] = {}, who_masks[lanes] = {};

  void set(std::uint32_t lane, MatchNode& node) noexcept {
    tags[lane] = node.tag;
    masks[lane] = static_cast<PostedNode&>(node).mask;
    whos[lane] = who_of(node.session, node.source);
    who_masks[lane] = who_mask_of(node.source);
    keep(lane, node);
  }
};
static_assert(sizeof(PostedVector) == 6 * 64);

struct UnexpectedVector : Lanes<UnexpectedVector, 8> {
  static constexpr unsigned lines_searched = 3;
  alignas(64) std::uint64_t tags[lanes] = {}, whos[lanes] = {};

  void set(std::uint32_t lane, MatchNode& node) noexcept {
    tags[lane] = node.tag;
    whos[lane] = who_of(node.session, node.source);
    keep(lane, node);
  }
};
static_assert(sizeof(UnexpectedVector) == 4 * 64);

#if CANELE_X86
CANELE_TARGET_AVX512 inline __m512i row512(const std::uint64_t* row) { return _mm512_load_si512(row); }
CANELE_TARGET_AVX2 inline __m256i row256(const std::uint64_t* row, int half) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(row) + half);
}
CANELE_TARGET_AVX2 inline std::uint32_t zeros(__m256i difference) {
  const __m256i zero = _mm256_cmpeq_epi64(difference, _mm256_setzero_si256());
  return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(zero)));
}
#endif

struct AcceptAll {
  template <typename Query>
  explicit AcceptAll(const Query&) {}
  bool operator()(const MatchNode&, Tally&) const noexcept { return true; }
};

/// Both kinds of searches. Receives have their masks in the block; messages are searched with the masks of one receive.
template <typename Block>
struct Query {
  using Accept = AcceptAll;
  std::uint64_t tag, who;
  std::uint64_t mask = 0, who_mask = 0;  // where the block has none

  static constexpr bool has_masks = std::is_same_v<Block, PostedVector>;
  struct Scalar {
    const Query& q;
    std::uint32_t operator()(const Block& b) const noexcept {
      std::uint32_t found = 0;
      for (unsigned i = 0; i < Block::lanes; ++i) {
        std::uint64_t tag_bits = q.mask, who_bits = q.who_mask;
        if constexpr (has_masks) tag_bits = b.masks[i], who_bits = b.who_masks[i];
        const bool same = (((b.tags[i] ^ q.tag) & tag_bits) | ((b.whos[i] ^ q.who) & who_bits)) == 0;
        found |= same ? 1u << i : 0u;
      }
      return found;
    }
  };
#if CANELE_X86
  struct Avx2 {
    const Query& q;
    CANELE_TARGET_AVX2 std::uint32_t operator()(const Block& b) const noexcept { return half(b, 0) | half(b, 1) << 4; }
    CANELE_TARGET_AVX2 std::uint32_t half(const Block& b, int h) const noexcept {
      __m256i tag_bits = all(q.mask), who_bits = all(q.who_mask);
      if constexpr (has_masks) tag_bits = row256(b.masks, h), who_bits = row256(b.who_masks, h);
      const __m256i tags = _mm256_and_si256(_mm256_xor_si256(row256(b.tags, h), all(q.tag)), tag_bits);
      const __m256i whos = _mm256_and_si256(_mm256_xor_si256(row256(b.whos, h), all(q.who)), who_bits);
      return zeros(_mm256_or_si256(tags, whos));
    }
    CANELE_TARGET_AVX2 static __m256i all(std::uint64_t number) noexcept {
      return _mm256_set1_epi64x(static_cast<long long>(number));
    }
  };
  struct Avx512 {
    const Query& q;
    CANELE_TARGET_AVX512 std::uint32_t operator()(const Block& b) const noexcept {
      __m512i tag_bits = all(q.mask), who_bits = all(q.who_mask);
      if constexpr (has_masks) tag_bits = row512(b.masks), who_bits = row512(b.who_masks);
      return _mm512_testn_epi64_mask(_mm512_xor_si512(row512(b.tags), all(q.tag)), tag_bits) &
             _mm512_testn_epi64_mask(_mm512_xor_si512(row512(b.whos), all(q.who)), who_bits);
    }
    CANELE_TARGET_AVX512 static __m512i all(std::uint64_t number) noexcept {
      return _mm512_set1_epi64(static_cast<long long>(number));
    }
  };
#endif
};

class VectorList final : public LaneAlternative<PostedVector, UnexpectedVector> {
 public:
  VectorList(Isa isa, Regions* regions)
      : LaneAlternative(regions),
        search_posted_(search_for<PostedVector, Arrival>(isa)),
        search_unexpected_(search_for<UnexpectedVector, Receiving>(isa)) {}

  std::size_t bytes() const noexcept override { return sizeof *this + bytes_of_lists(); }

 protected:
  PostedNode* search(const Envelope& message, Tally& cost) const noexcept override {
    const Arrival query{message.tag, who_of(message.session, message.source)};
    return static_cast<PostedNode*>(search_posted_(posted_.first(), query, cost));
  }
  UnexpectedNode* search(const MatchSession&, const Wanted& wanted, Tally& cost) const noexcept override {
    const Receiving query{wanted.tag, who_of(wanted.session, wanted.source), wanted.mask, who_mask_of(wanted.source)};
    return static_cast<UnexpectedNode*>(search_unexpected_(unexpected_.first(), query, cost));
  }

 private:
  using Arrival = Query<PostedVector>;
  using Receiving = Query<UnexpectedVector>;

  Search<PostedVector, Arrival> search_posted_;
  Search<UnexpectedVector, Receiving> search_unexpected_;
};

}  // namespace

std::unique_ptr<Alternative> make_vector_list(Isa isa, Regions* regions) {
  return std::make_unique<VectorList>(isa, regions);
}

}  // namespace canele::comm::matching
