// SPDX-License-Identifier: BSD-3-Clause
//
// PlainList: one list of posted receives and one of unexpected messages, for all sessions and peers, as in MPICH's CH3.
//
// The links are those of the nodes, so it needs no memory of its own. No structure is smaller, or slower when long.
#include "comm/matching/alternatives/structures.hpp"

namespace canele::comm::matching {
namespace {

class PlainList final : public Alternative {
 public:
  void each(void (*visit)(void*, PostedNode&), void* context) const override {
    posted_.each([&](MatchNode& node) { visit(context, static_cast<PostedNode&>(node)); });
  }
  std::size_t bytes() const noexcept override { return sizeof *this; }

 protected:
  void append(MatchSession&, PostedNode& receive) override { posted_.append(receive); }
  void append(MatchSession&, UnexpectedNode& message) override { unexpected_.append(message); }
  void remove(MatchSession&, PostedNode& receive) noexcept override { posted_.unlink(receive); }
  void remove(MatchSession&, UnexpectedNode& message) noexcept override { unexpected_.unlink(message); }

  PostedNode* search(const Envelope& message, Tally& cost) const noexcept override {
    return first_that<PostedNode>(posted_.first, cost, [&](const PostedNode& r) { return fits(r, message); });
  }
  UnexpectedNode* search(const MatchSession&, const Wanted& wanted, Tally& cost) const noexcept override {
    return first_that<UnexpectedNode>(unexpected_.first, cost,
                                      [&](const UnexpectedNode& m) { return fits(m, wanted); });
  }

 private:
  NodeFifo posted_, unexpected_;
};

}  // namespace

std::unique_ptr<Alternative> make_plain_list() { return std::make_unique<PlainList>(); }

}  // namespace canele::comm::matching
