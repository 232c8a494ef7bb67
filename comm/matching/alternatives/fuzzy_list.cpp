// SPDX-License-Identifier: BSD-3-Clause
//
// FuzzyList: thirty-two entries in a block, of which only 16 bits of key are compared at once. Entries that pass are
// compared in full (M. Dosanjh, 2017, chapter 6).
//
// A key consists of 10 bits of the tag and 6 bits of session and source, not of a mix of all. So a receive from any
// source still filters by tag, and one for any tag by source. A mask of a part of the tag filters by source only.
//
//   receives: │ 4 lines of nodes │ live next prev │ 32 keys │ 32 masks │    7 lines, 3 read where none passes
//   messages: │ 4 lines of nodes │ live next prev │ 32 keys │               6 lines, 2 read
//
// Rejected: 64 keys of 8 bits. With 8 bits for tag, source and session, one in four blocks has an entry that passes
// falsely, and each costs a line.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <type_traits>

#include "comm/matching/alternatives/lane_list.hpp"
#include "comm/matching/alternatives/structures.hpp"
#include "comm/matching/alternatives/vector_walk.hpp"

namespace canele::comm::matching {
namespace {

using Key = std::uint16_t;
constexpr unsigned key_tag_bits = 10;
constexpr Key tag_part = (1u << key_tag_bits) - 1, who_part = static_cast<Key>(~tag_part);

/// The upper bits of a product depend on all bits of the number.
Key key_of(std::uint64_t tag, std::uint32_t session, std::int32_t source) noexcept {
  const std::uint64_t tag_mixed = tag * 0x9e3779b97f4a7c15u;
  const std::uint64_t who_mixed = who_of(session, source) * 0x9e3779b97f4a7c15u;
  return static_cast<Key>(tag_mixed >> (64 - key_tag_bits) | who_mixed >> (48 + key_tag_bits) << key_tag_bits);
}
Key mask_of(std::int32_t source, std::uint64_t mask) noexcept {
  const Key tag = mask == ~std::uint64_t{0} ? tag_part : 0;
  const Key who = source == rank_any ? 0 : who_part;
  return tag | who;
}

struct PostedBlock : Lanes<PostedBlock, 32> {
  static constexpr unsigned lines_searched = 3;
  alignas(64) Key keys[lanes] = {};
  alignas(64) Key masks[lanes] = {};

  void set(std::uint32_t lane, MatchNode& node) noexcept {
    keys[lane] = key_of(node.tag, node.session, node.source);
    masks[lane] = mask_of(node.source, static_cast<PostedNode&>(node).mask);
    keep(lane, node);
  }
};
static_assert(sizeof(PostedBlock) == 7 * 64);

struct UnexpectedBlock : Lanes<UnexpectedBlock, 32> {
  static constexpr unsigned lines_searched = 2;
  alignas(64) Key keys[lanes] = {};

  void set(std::uint32_t lane, MatchNode& node) noexcept {
    keys[lane] = key_of(node.tag, node.session, node.source);
    keep(lane, node);
  }
};
static_assert(sizeof(UnexpectedBlock) == 6 * 64);

#if CANELE_X86
CANELE_TARGET_AVX512 inline __m512i row512(const Key* row) { return _mm512_load_si512(row); }
CANELE_TARGET_AVX2 inline __m256i row256(const Key* row, int half) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(row) + half);
}
/// Returns a bit for each of 32 numbers of 16 bits, set if the number is zero.
CANELE_TARGET_AVX2 inline std::uint32_t zeros(__m256i low, __m256i high) {
  const __m256i none = _mm256_setzero_si256();
  const __m256i packed = _mm256_packs_epi16(_mm256_cmpeq_epi16(low, none), _mm256_cmpeq_epi16(high, none));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(packed, 0xd8)));
}
#endif

/// Both kinds of searches; the block determines which mask applies.
template <typename Block, typename Full>
struct Filter {
  Key key, mask;
  Full full;

  static constexpr bool has_masks = std::is_same_v<Block, PostedBlock>;
  struct Accept {
    const Filter& q;
    bool operator()(const MatchNode& node, Tally& cost) const noexcept {
      ++cost.verified;
      ++cost.lines;
      return q.full(node);
    }
  };
  struct Scalar {
    const Filter& q;
    std::uint32_t operator()(const Block& b) const noexcept {
      std::uint32_t found = 0;
      for (unsigned i = 0; i < Block::lanes; ++i) {
        Key wanted = q.mask;
        if constexpr (has_masks) wanted = b.masks[i];
        found |= ((b.keys[i] ^ q.key) & wanted) == 0 ? std::uint32_t{1} << i : 0u;
      }
      return found;
    }
  };
#if CANELE_X86
  struct Avx2 {
    const Filter& q;
    CANELE_TARGET_AVX2 std::uint32_t operator()(const Block& b) const noexcept { return zeros(half(b, 0), half(b, 1)); }
    CANELE_TARGET_AVX2 __m256i half(const Block& b, int h) const noexcept {
      __m256i wanted = _mm256_set1_epi16(static_cast<short>(q.mask));
      if constexpr (has_masks) wanted = row256(b.masks, h);
      const __m256i difference = _mm256_xor_si256(row256(b.keys, h), _mm256_set1_epi16(static_cast<short>(q.key)));
      return _mm256_and_si256(difference, wanted);
    }
  };
  struct Avx512 {
    const Filter& q;
    CANELE_TARGET_AVX512 std::uint32_t operator()(const Block& b) const noexcept {
      __m512i wanted = _mm512_set1_epi16(static_cast<short>(q.mask));
      if constexpr (has_masks) wanted = row512(b.masks);
      const __m512i difference = _mm512_xor_si512(row512(b.keys), _mm512_set1_epi16(static_cast<short>(q.key)));
      return _mm512_testn_epi16_mask(difference, wanted);
    }
  };
#endif
};

class FuzzyList final : public LaneAlternative<PostedBlock, UnexpectedBlock> {
 public:
  FuzzyList(Isa isa, Regions* regions)
      : LaneAlternative(regions),
        search_posted_(search_for<PostedBlock, Arrival>(isa)),
        search_unexpected_(search_for<UnexpectedBlock, Receiving>(isa)) {}

  std::size_t bytes() const noexcept override { return sizeof *this + bytes_of_lists(); }

 protected:
  PostedNode* search(const Envelope& message, Tally& cost) const noexcept override {
    const Key key = key_of(message.tag, message.session, message.source);
    return static_cast<PostedNode*>(search_posted_(posted_.first(), {key, 0, {message}}, cost));
  }
  UnexpectedNode* search(const MatchSession&, const Wanted& wanted, Tally& cost) const noexcept override {
    const Key key = key_of(wanted.tag, wanted.session, wanted.source), mask = mask_of(wanted.source, wanted.mask);
    return static_cast<UnexpectedNode*>(search_unexpected_(unexpected_.first(), {key, mask, {wanted}}, cost));
  }

 private:
  struct FitsMessage {
    const Envelope& message;
    bool operator()(const MatchNode& node) const noexcept {
      return fits(static_cast<const PostedNode&>(node), message);
    }
  };
  struct FitsWanted {
    const Wanted& wanted;
    bool operator()(const MatchNode& node) const noexcept {
      return fits(static_cast<const UnexpectedNode&>(node), wanted);
    }
  };
  using Arrival = Filter<PostedBlock, FitsMessage>;
  using Receiving = Filter<UnexpectedBlock, FitsWanted>;

  Search<PostedBlock, Arrival> search_posted_;
  Search<UnexpectedBlock, Receiving> search_unexpected_;
};

}  // namespace

std::unique_ptr<Alternative> make_fuzzy_list(Isa isa, Regions* regions) {
  return std::make_unique<FuzzyList>(isa, regions);
}

}  // namespace canele::comm::matching
