// SPDX-License-Identifier: BSD-3-Clause
//
// VectorList: eight entries in a block, each field in a row of its own, so that eight are compared at once (M. Dosanjh,
// 2017, section 5.4, widened: eight lanes of 64 bits where there were sixteen of 32).
//
// Who: factory.cpp. Threads: under the engine's lock.
// Surprise: masks are stored with the receives, so every class is one comparison, masks of part of the tag as well.
//
//   receives: │ 8 tags │ 8 masks │ 8 who │ 8 masks │ 8 nodes │ live next prev │   6 lines, 5 read where nothing fits
//   messages: │ 8 tags │ 8 who │ 8 nodes │ live next prev │                       4 lines, 3 read
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "comm/matching/alternatives/lane_list.hpp"
#include "comm/matching/alternatives/structures.hpp"
#include "comm/matching/alternatives/vector_walk.hpp"

namespace canele::comm::matching {
namespace {

struct alignas(64) PostedBlock {
  static constexpr std::uint32_t lanes = 8;
  static constexpr unsigned lines_searched = 5;
  std::uint64_t tags[lanes] = {}, masks[lanes] = {}, whos[lanes] = {}, who_masks[lanes] = {};
  MatchNode* nodes[lanes] = {};
  alignas(64) std::uint32_t live_lanes = 0;
  PostedBlock* next = nullptr;
  PostedBlock* prev = nullptr;

  void set(std::uint32_t lane, MatchNode& node) noexcept {
    tags[lane] = node.tag;
    masks[lane] = static_cast<PostedNode&>(node).mask;
    whos[lane] = who_of(node.session, node.source);
    who_masks[lane] = who_mask_of(node.source);
    nodes[lane] = &node;
    live_lanes |= 1u << lane;
  }
  void clear(std::uint32_t lane) noexcept { live_lanes &= ~(1u << lane); }
  std::uint32_t live() const noexcept { return live_lanes; }
  MatchNode* node(std::uint32_t lane) const noexcept { return nodes[lane]; }
};
static_assert(sizeof(PostedBlock) == 6 * 64);

struct alignas(64) UnexpectedBlock {
  static constexpr std::uint32_t lanes = 8;
  static constexpr unsigned lines_searched = 3;
  std::uint64_t tags[lanes] = {}, whos[lanes] = {};
  MatchNode* nodes[lanes] = {};
  alignas(64) std::uint32_t live_lanes = 0;
  UnexpectedBlock* next = nullptr;
  UnexpectedBlock* prev = nullptr;

  void set(std::uint32_t lane, MatchNode& node) noexcept {
    tags[lane] = node.tag;
    whos[lane] = who_of(node.session, node.source);
    nodes[lane] = &node;
    live_lanes |= 1u << lane;
  }
  void clear(std::uint32_t lane) noexcept { live_lanes &= ~(1u << lane); }
  std::uint32_t live() const noexcept { return live_lanes; }
  MatchNode* node(std::uint32_t lane) const noexcept { return nodes[lane]; }
};
static_assert(sizeof(UnexpectedBlock) == 4 * 64);

/// The lanes of a block are initialised as they are used; until then live() masks them out, and valgrind may say that
/// it does not like the comparison.
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

struct Arrival {
  using Accept = AcceptAll;
  std::uint64_t tag, who;

  struct Scalar {
    const Arrival& q;
    std::uint32_t operator()(const PostedBlock& b) const noexcept {
      std::uint32_t found = 0;
      for (unsigned i = 0; i < PostedBlock::lanes; ++i) {
        const bool same = (((b.tags[i] ^ q.tag) & b.masks[i]) | ((b.whos[i] ^ q.who) & b.who_masks[i])) == 0;
        found |= same ? 1u << i : 0u;
      }
      return found;
    }
  };
#if CANELE_X86
  struct Avx2 {
    const Arrival& q;
    CANELE_TARGET_AVX2 std::uint32_t operator()(const PostedBlock& b) const noexcept {
      return half(b, 0) | half(b, 1) << 4;
    }
    CANELE_TARGET_AVX2 std::uint32_t half(const PostedBlock& b, int h) const noexcept {
      const __m256i tags = masked(row256(b.tags, h), q.tag, row256(b.masks, h));
      return zeros(_mm256_or_si256(tags, masked(row256(b.whos, h), q.who, row256(b.who_masks, h))));
    }
    CANELE_TARGET_AVX2 static __m256i masked(__m256i row, std::uint64_t wanted, __m256i mask) noexcept {
      return _mm256_and_si256(_mm256_xor_si256(row, _mm256_set1_epi64x(static_cast<long long>(wanted))), mask);
    }
  };
  struct Avx512 {
    const Arrival& q;
    CANELE_TARGET_AVX512 std::uint32_t operator()(const PostedBlock& b) const noexcept {
      const __m512i tags = _mm512_xor_si512(row512(b.tags), _mm512_set1_epi64(static_cast<long long>(q.tag)));
      const __m512i whos = _mm512_xor_si512(row512(b.whos), _mm512_set1_epi64(static_cast<long long>(q.who)));
      return _mm512_testn_epi64_mask(tags, row512(b.masks)) & _mm512_testn_epi64_mask(whos, row512(b.who_masks));
    }
  };
#endif
};

struct Receiving {
  using Accept = AcceptAll;
  std::uint64_t tag, mask, who, who_mask;

  struct Scalar {
    const Receiving& q;
    std::uint32_t operator()(const UnexpectedBlock& b) const noexcept {
      std::uint32_t found = 0;
      for (unsigned i = 0; i < UnexpectedBlock::lanes; ++i) {
        const bool same = (((b.tags[i] ^ q.tag) & q.mask) | ((b.whos[i] ^ q.who) & q.who_mask)) == 0;
        found |= same ? 1u << i : 0u;
      }
      return found;
    }
  };
#if CANELE_X86
  struct Avx2 {
    const Receiving& q;
    CANELE_TARGET_AVX2 std::uint32_t operator()(const UnexpectedBlock& b) const noexcept {
      return half(b, 0) | half(b, 1) << 4;
    }
    CANELE_TARGET_AVX2 std::uint32_t half(const UnexpectedBlock& b, int h) const noexcept {
      const __m256i tags = masked(row256(b.tags, h), q.tag, q.mask);
      return zeros(_mm256_or_si256(tags, masked(row256(b.whos, h), q.who, q.who_mask)));
    }
    CANELE_TARGET_AVX2 static __m256i masked(__m256i row, std::uint64_t wanted, std::uint64_t mask) noexcept {
      const __m256i difference = _mm256_xor_si256(row, _mm256_set1_epi64x(static_cast<long long>(wanted)));
      return _mm256_and_si256(difference, _mm256_set1_epi64x(static_cast<long long>(mask)));
    }
  };
  struct Avx512 {
    const Receiving& q;
    CANELE_TARGET_AVX512 std::uint32_t operator()(const UnexpectedBlock& b) const noexcept {
      return equal(row512(b.tags), q.tag, q.mask) & equal(row512(b.whos), q.who, q.who_mask);
    }
    CANELE_TARGET_AVX512 static std::uint32_t equal(__m512i row, std::uint64_t wanted, std::uint64_t mask) noexcept {
      const __m512i difference = _mm512_xor_si512(row, _mm512_set1_epi64(static_cast<long long>(wanted)));
      return _mm512_testn_epi64_mask(difference, _mm512_set1_epi64(static_cast<long long>(mask)));
    }
  };
#endif
};

class VectorList final : public Alternative {
 public:
  explicit VectorList(Isa isa)
      : search_posted_(search_for<PostedBlock, Arrival>(isa)),
        search_unexpected_(search_for<UnexpectedBlock, Receiving>(isa)) {}

  void each(void (*visit)(void*, PostedNode&), void* context) const override {
    posted_.each([&](MatchNode& node) { visit(context, static_cast<PostedNode&>(node)); });
  }
  std::size_t bytes() const noexcept override { return sizeof *this + posted_.bytes() + unexpected_.bytes(); }

 protected:
  void append(MatchSession&, PostedNode& receive) override { posted_.append(receive); }
  void append(MatchSession&, UnexpectedNode& message) override { unexpected_.append(message); }
  void remove(MatchSession&, PostedNode& receive) noexcept override { posted_.remove(receive); }
  void remove(MatchSession&, UnexpectedNode& message) noexcept override { unexpected_.remove(message); }

  PostedNode* search(const Envelope& message, Tally& cost) const noexcept override {
    const Arrival query{message.tag, who_of(message.session, message.source)};
    return static_cast<PostedNode*>(search_posted_(posted_.first(), query, cost));
  }
  UnexpectedNode* search(const MatchSession&, const Wanted& wanted, Tally& cost) const noexcept override {
    const Receiving query{wanted.tag, wanted.mask, who_of(wanted.session, wanted.source), who_mask_of(wanted.source)};
    return static_cast<UnexpectedNode*>(search_unexpected_(unexpected_.first(), query, cost));
  }

 private:
  Search<PostedBlock, Arrival> search_posted_;
  Search<UnexpectedBlock, Receiving> search_unexpected_;
  LaneList<PostedBlock> posted_;
  LaneList<UnexpectedBlock> unexpected_;
};

}  // namespace

std::unique_ptr<Alternative> make_vector_list(Isa isa) { return std::make_unique<VectorList>(isa); }

}  // namespace canele::comm::matching
