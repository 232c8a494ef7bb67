// SPDX-License-Identifier: BSD-3-Clause
//
// PeerLists: for each session, a list of receives and a list of messages for each peer, and a list of the receives from
// any source. As in Open MPI's ob1.
//
// A receive from any source searches the messages of every peer, because the oldest must win. (ob1 takes the first that
// it finds; our order rule is stricter.)
//
//   session ──▶ peers[source] ──▶ posted, unexpected          any_source ──▶ posted, ordered against them
//
// Memory grows with sessions × peers that were mentioned, whether entries are queued or not.
#include <vector>

#include "comm/matching/alternatives/structures.hpp"

namespace canele::comm::matching {
namespace {

class PeerLists final : public Alternative {
 public:
  void each(void (*visit)(void*, PostedNode&), void* context) const override {
    const auto one = [&](MatchNode& node) { visit(context, static_cast<PostedNode&>(node)); };
    for (const PerSession& session : sessions_) {
      for (const PerPeer& peer : session.peers) peer.posted.each(one);
      session.any_source.each(one);
    }
  }
  std::size_t bytes() const noexcept override {
    std::size_t sum = sizeof *this + sessions_.capacity() * sizeof(PerSession);
    for (const PerSession& session : sessions_) sum += session.peers.capacity() * sizeof(PerPeer);
    return sum;
  }

 protected:
  void append(MatchSession& session, PostedNode& receive) override {
    make_room(session.id, receive.source);
    list_of(receive).append(receive);
  }
  void append(MatchSession& session, UnexpectedNode& message) override {
    make_room(session.id, message.source);
    peer(message).unexpected.append(message);
  }
  void remove(MatchSession&, PostedNode& receive) noexcept override { list_of(receive).unlink(receive); }
  void remove(MatchSession&, UnexpectedNode& message) noexcept override { peer(message).unexpected.unlink(message); }

  PostedNode* search(const Envelope& message, Tally& cost) const noexcept override {
    if (message.session >= sessions_.size()) return nullptr;
    const PerSession& session = sessions_[message.session];
    const auto fitting = [&](const PostedNode& receive) { return fits(receive, message); };
    PostedNode* named = nullptr;
    if (static_cast<std::size_t>(message.source) < session.peers.size()) {
      ++cost.lines;
      named =
          first_that<PostedNode>(session.peers[static_cast<std::size_t>(message.source)].posted.first, cost, fitting);
    }
    PostedNode* any = first_that<PostedNode>(session.any_source.first, cost, fitting, named);
    return any != nullptr ? any : named;
  }
  UnexpectedNode* search(const MatchSession&, const Wanted& wanted, Tally& cost) const noexcept override {
    if (wanted.session >= sessions_.size()) return nullptr;
    const std::vector<PerPeer>& peers = sessions_[wanted.session].peers;
    const auto fitting = [&](const UnexpectedNode& message) { return fits(message, wanted); };
    if (wanted.source != rank_any) {
      if (static_cast<std::size_t>(wanted.source) >= peers.size()) return nullptr;
      ++cost.lines;
      return first_that<UnexpectedNode>(peers[static_cast<std::size_t>(wanted.source)].unexpected.first, cost, fitting);
    }
    UnexpectedNode* oldest = nullptr;
    for (const PerPeer& peer : peers) {
      ++cost.lines;
      UnexpectedNode* candidate = first_that<UnexpectedNode>(peer.unexpected.first, cost, fitting, oldest);
      if (candidate != nullptr) oldest = candidate;
    }
    return oldest;
  }

 private:
  struct PerPeer {
    NodeFifo posted, unexpected;
  };
  struct PerSession {
    std::vector<PerPeer> peers;
    NodeFifo any_source;
  };

  void make_room(std::uint32_t session, std::int32_t source) {
    if (session >= sessions_.size()) sessions_.resize(session + std::size_t{1});
    std::vector<PerPeer>& peers = sessions_[session].peers;
    if (source != rank_any && static_cast<std::size_t>(source) >= peers.size())
      peers.resize(static_cast<std::size_t>(source) + 1);
  }
  PerPeer& peer(const MatchNode& node) noexcept {
    return sessions_[node.session].peers[static_cast<std::size_t>(node.source)];
  }
  NodeFifo& list_of(const PostedNode& receive) noexcept {
    return receive.source == rank_any ? sessions_[receive.session].any_source : peer(receive).posted;
  }

  std::vector<PerSession> sessions_;
};

}  // namespace

std::unique_ptr<Alternative> make_peer_lists() { return std::make_unique<PeerLists>(); }

}  // namespace canele::comm::matching
