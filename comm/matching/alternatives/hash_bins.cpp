// SPDX-License-Identifier: BSD-3-Clause
//
// HashBins: a fixed array of lists; an entry is in the list of its (session, tag, source). Receives with a wildcard or
// a mask are in one additional list. As in UCX, whose array has 1,021 lists as well.
//
// Unexpected messages are in their bin, and in the session's arrival order for receives that name no bin.
//
//   bins_[hash] ──▶ exact receives, and exact keys of messages     wild_ ──▶ all other receives, by post order
//
// Rejected: an array that grows. That is the table.
#include <array>
#include <utility>

#include "comm/matching/alternatives/structures.hpp"

namespace canele::comm::matching {
namespace {

class HashBins final : public Alternative {
 public:
  explicit HashBins(std::uint64_t seed) : seed_(seed | 1) {}

  void each(void (*visit)(void*, PostedNode&), void* context) const override {
    const auto one = [&](MatchNode& node) { visit(context, static_cast<PostedNode&>(node)); };
    for (const Bin& bin : bins_) bin.posted.each(one);
    wild_.each(one);
  }
  std::size_t bytes() const noexcept override { return sizeof *this; }

 protected:
  void append(MatchSession&, PostedNode& receive) override { list_of(receive).append(receive); }
  void append(MatchSession& session, UnexpectedNode& message) override {
    session.arrival_index.reserve(0, 1, 1);
    session.arrival_index.append(message);
    bin({message.tag, message.session, message.source}).unexpected.append(message);
  }
  void remove(MatchSession&, PostedNode& receive) noexcept override { list_of(receive).unlink(receive); }
  void remove(MatchSession& session, UnexpectedNode& message) noexcept override {
    bin({message.tag, message.session, message.source}).unexpected.unlink(message);
    session.arrival_index.remove(message);
  }

  PostedNode* search(const Envelope& message, Tally& cost) const noexcept override {
    ++cost.lines;
    const auto fitting = [&](const PostedNode& receive) { return fits(receive, message); };
    PostedNode* exact = first_that<PostedNode>(bin(message).posted.first, cost, fitting);
    PostedNode* wild = first_that<PostedNode>(wild_.first, cost, fitting, exact);
    return wild != nullptr ? wild : exact;
  }
  UnexpectedNode* search(const MatchSession& session, const Wanted& wanted, Tally& cost) const noexcept override {
    if (classify(wanted.source, wanted.mask) == MatchClass::exact) {
      ++cost.lines;
      return first_that<UnexpectedNode>(bin({wanted.tag, wanted.session, wanted.source}).unexpected.first, cost,
                                        [&](const UnexpectedNode& message) { return fits(message, wanted); });
    }
    for (UnexpectedNode* message = session.arrival_index.first(); message != nullptr;
         message = ArrivalIndex::after(*message)) {
      cost.attempts += 1;
      cost.lines += 2;  // the line with the key, and the line with the link behind it
      if (fits(*message, wanted)) return message;
    }
    return nullptr;
  }

 private:
  struct Bin {
    NodeFifo posted, unexpected;
  };
  static constexpr std::size_t bins = 1021;  // a prime

  const Bin& bin(const Envelope& key) const noexcept {
    const std::uint64_t who = who_of(key.session, key.source);
    const std::uint64_t mixed = (key.tag ^ seed_) * 0x9e3779b97f4a7c15u + who * 0xc2b2ae3d27d4eb4fu;
    return bins_[(mixed ^ mixed >> 32) % bins];
  }
  Bin& bin(const Envelope& key) noexcept { return const_cast<Bin&>(std::as_const(*this).bin(key)); }
  NodeFifo& list_of(const PostedNode& receive) noexcept {
    const bool exact = receive.match_class == static_cast<std::uint8_t>(MatchClass::exact);
    return exact ? bin({receive.tag, receive.session, receive.source}).posted : wild_;
  }

  std::uint64_t seed_;
  NodeFifo wild_;
  std::array<Bin, bins> bins_;
};

}  // namespace

std::unique_ptr<Alternative> make_hash_bins(std::uint64_t seed) { return std::make_unique<HashBins>(seed); }

}  // namespace canele::comm::matching
