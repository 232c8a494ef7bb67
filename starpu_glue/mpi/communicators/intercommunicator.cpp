// SPDX-License-Identifier: BSD-3-Clause
//
// Intercommunicators: the agreement of two leaders, and the union of two groups.
//
// The group whose leader has the lower world rank is the lower one, and gives the label. An error of one leader is told
// to its group. The other group then waits, as with a call that was not made at all.
#include "starpu_glue/mpi/communicators/intercommunicator.hpp"

#include <utility>
#include <vector>

#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

constexpr std::uint64_t kTagsOfLeaders = std::uint64_t{1} << 32;  // those below belong to MPI_Comm_create_group

/// What the leaders tell each other, and then their groups.
struct Offer {
  std::int32_t code = MPI_SUCCESS;
  std::int32_t size = 0;
  std::int32_t leader = 0;  ///< world rank
  std::uint64_t number = 0;
};

int share(Communicator& comm, void* data, std::size_t length, int root) {
  Transfer transfer;
  const int code = from_engine(canele_ibcast(comm.group(), data, length, root, nullptr, &transfer.engine));
  return code == MPI_SUCCESS ? transfer.wait(nullptr) : code;
}

/// Sends to the other leader, and receives from it.
int swap(canele_session_t* session, int peer, std::uint64_t tag, const Buffer& mine, const Buffer& theirs) {
  Batch batch(session, tag, 2);
  int code = batch.receive(peer, theirs);
  if (code == MPI_SUCCESS) code = batch.send(peer, mine);
  return code == MPI_SUCCESS ? batch.finish() : code;
}

std::vector<int> world_ranks(const Ranks& group) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) ranks.push_back(group.world_rank(rank));
  return ranks;
}

Buffer buffer_of(std::vector<int>& ranks) { return bytes_buffer(ranks.data(), ranks.size() * sizeof(int)); }

/// The other leader, and where both meet.
struct Peer {
  Communicator* comm = nullptr;
  int world_rank = 0;
  std::uint64_t tag = 0;
};

int find_peer(MPI_Comm comm, int remote_leader, int tag, Peer* peer) {
  if (const int code = get_communicator(comm, &peer->comm); code != MPI_SUCCESS) return code;
  if (tag < 0) return fail(MPI_ERR_TAG, "tag is %d; expected: at least 0", tag);
  if (!peer->comm->has_rank(remote_leader))
    return fail(MPI_ERR_RANK, "the remote leader is %d; the communicator has the ranks 0 to %d", remote_leader,
                peer->comm->size() - 1);
  peer->world_rank = peer->comm->world_rank(remote_leader);
  peer->tag = kTagsOfLeaders + static_cast<std::uint64_t>(tag);
  return MPI_SUCCESS;
}

int find_peer(MPI_Group remote, int remote_leader, std::uint64_t hash, Peer* peer) {
  RanksPointer ranks;
  if (const int code = get_group(remote, &ranks); code != MPI_SUCCESS) return code;
  if (remote_leader < 0 || remote_leader >= ranks->size())
    return fail(MPI_ERR_RANK, "the remote leader is %d; the group has the ranks 0 to %d", remote_leader,
                ranks->size() - 1);
  peer->world_rank = ranks->world_rank(remote_leader);
  peer->tag = hash;
  return get_base(&peer->comm);
}

/// Talks to the other leader.
int meet(const Communicator& local_comm, const Peer& peer, Offer* mine, Offer* theirs, std::vector<int>* remote) {
  if (peer.world_rank == mine->leader) return fail(MPI_ERR_RANK, "the remote leader is this process");
  canele_session_t* session = nullptr;
  int code = peer.comm->agreements(&session);
  if (code != MPI_SUCCESS) return code;
  const InUse in_use(*peer.comm);
  code =
      swap(session, peer.world_rank, peer.tag, bytes_buffer(mine, sizeof *mine), bytes_buffer(theirs, sizeof *theirs));
  if (code != MPI_SUCCESS) return code;
  remote->resize(static_cast<std::size_t>(theirs->size));
  std::vector<int> own = world_ranks(*local_comm.ranks());
  return swap(session, peer.world_rank, peer.tag, buffer_of(own), buffer_of(*remote));
}

/// Makes an intercommunicator. On the leader, find(peer) tells where it meets the other one, and returns an MPI code.
template <class Find>
int join(Communicator& local_comm, int local_leader, Find find, const ErrorHandlerUse& handler, MPI_Comm* made) {
  if (!local_comm.has_rank(local_leader))
    return fail(MPI_ERR_RANK, "the local leader is %d; the communicator has the ranks 0 to %d", local_leader,
                local_comm.size() - 1);
  Offer offers[2];  // of this group and of the other one
  auto& [mine, theirs] = offers;
  mine.leader = local_comm.world_rank(local_leader);
  mine.size = local_comm.size();
  std::vector<int> remote;
  const bool leads = local_comm.rank() == local_leader;
  if (leads) {
    Peer peer;
    mine.number = take_number();
    mine.code = find(&peer);
    if (mine.code == MPI_SUCCESS) mine.code = meet(local_comm, peer, &mine, &theirs, &remote);
  }
  int code = share(local_comm, offers, sizeof offers, local_leader);
  if (code == MPI_SUCCESS && mine.code != MPI_SUCCESS)
    return leads ? mine.code : fail(mine.code, "the leaders of both groups have not met");
  remote.resize(static_cast<std::size_t>(theirs.size));
  if (code == MPI_SUCCESS) code = share(local_comm, remote.data(), remote.size() * sizeof(int), local_leader);
  if (code != MPI_SUCCESS) return code;
  for (const int rank : remote) {
    if (local_comm.ranks()->position(rank) != MPI_UNDEFINED)
      return fail(MPI_ERR_COMM, "both groups have rank %d of MPI_COMM_WORLD; expected: groups without a common rank",
                  rank);
  }
  const bool is_upper = mine.leader > theirs.leader;
  const Offer& lower = is_upper ? theirs : mine;
  const auto ranks = std::make_shared<const Ranks>(std::move(remote));
  Communicator* comm = nullptr;
  code = Communicator::create(engine(), ranks, local_comm.rank(), derived_label(lower.leader, lower.number), &comm,
                              std::make_unique<Inter>(local_comm.ranks(), *ranks, is_upper));
  return publish(code, comm, handler, made);
}

}  // namespace

int create_inter(Communicator& local_comm, int local_leader, MPI_Comm peer, int remote_leader, int tag,
                 MPI_Comm* made) {
  const auto find = [=](Peer* found) { return find_peer(peer, remote_leader, tag, found); };
  return join(local_comm, local_leader, find, local_comm.error_handler(), made);
}

int create_inter_from_groups(const RanksPointer& own, int own_leader, MPI_Group remote, int remote_leader,
                             const char* tag, MPI_Errhandler handler, MPI_Comm* made) {
  if (own->position(canele_rank(engine())) == MPI_UNDEFINED)
    return fail(MPI_ERR_GROUP, "this process is not in the local group");
  std::uint64_t own_hash = 0, hash = 0;
  ErrorHandlerUse use;
  int code = hash_of_tag(tag, *own, &own_hash);
  if (code == MPI_SUCCESS) code = hash_of_tag(tag, Ranks(0), &hash);  // both groups know the tag only
  if (code == MPI_SUCCESS) code = use.set(ObjectKind::communicator, handler);
  Communicator *base = nullptr, *local_comm = nullptr;
  if (code == MPI_SUCCESS) code = get_base(&base);
  if (code == MPI_SUCCESS) code = agree(*base, own, own_hash, &local_comm);
  if (code != MPI_SUCCESS) return code;
  const auto find = [=](Peer* found) { return find_peer(remote, remote_leader, hash, found); };
  code = join(*local_comm, own_leader, find, use, made);
  local_comm->drop_reference();
  return code;
}

int merge(Communicator& inter, bool high, MPI_Comm* made) {
  struct Vote {
    std::uint64_t number;
    bool high;
  };
  std::vector<Vote> votes;
  int code = exchange(inter, Vote{take_number(), high}, &votes);
  if (code != MPI_SUCCESS) return code;
  const Inter& groups = *inter.inter();
  const bool remote_high = votes[static_cast<std::size_t>(groups.remote_begin)].high;
  for (int i = 0; i < inter.members(); ++i) {
    const bool is_remote = i >= groups.remote_begin && i < groups.remote_begin + inter.size();
    if (votes[static_cast<std::size_t>(i)].high != (is_remote ? remote_high : high))
      return fail(MPI_ERR_ARG, "the ranks of one group differ in `high`");
  }
  const bool own_last = high != remote_high ? high : groups.is_upper;
  std::vector<int> ranks = world_ranks(own_last ? *inter.ranks() : *groups.own);
  for (const int rank : world_ranks(own_last ? *groups.own : *inter.ranks())) ranks.push_back(rank);
  const int rank = inter.rank() + (own_last ? inter.size() : 0);
  Communicator* comm = nullptr;
  code = Communicator::create(engine(), std::make_shared<const Ranks>(std::move(ranks), groups.own->session()), rank,
                              derived_label(inter.first_member(), votes.front().number), &comm);
  return publish(code, comm, inter.error_handler(), made);
}

}  // namespace canele::mpi
