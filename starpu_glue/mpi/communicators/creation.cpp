// SPDX-License-Identifier: BSD-3-Clause
//
// New communicators, by agreement within the parent.
//
// Making a communicator costs one message exchange in the parent and needs no server. The leader's world rank and its
// running number make a name that no other communicator of the job ever has.
#include "starpu_glue/mpi/communicators/creation.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::mpi {
namespace {

constinit std::atomic<std::uint64_t> next_number{1};

constexpr std::size_t kMostOfLabel = 38;  // a group's label has up to 40 bytes, with ".c"

/// Registers a duplicate like publish(). It gets copies of the attributes. After an error nothing is left of it.
int publish_duplicate(Communicator& parent, Communicator* made, const InfoPairs& hints, MPI_Comm* handle) {
  made->set_topology(parent.topology());
  made->take_hints(hints);
  MPI_Comm published = MPI_COMM_NULL;
  if (const int code = publish(MPI_SUCCESS, made, parent.error_handler(), &published); code != MPI_SUCCESS) return code;
  if (parent.attributes().any()) {
    const int code = parent.attributes().copy_to(parent.handle(), made->attributes());
    if (code != MPI_SUCCESS) {
      made->attributes().remove_all(published);
      communicators_pool.release(published);
      made->drop_reference();
      return code;
    }
  }
  *handle = published;
  return MPI_SUCCESS;
}

/// What each rank says in a split.
struct Member {
  int color;
  int key;
  std::uint64_t number;  ///< used if the rank becomes a leader
};

/// The ranks of one color, and the label that their leader gives.
struct Chosen {
  RanksPointer ranks;
  std::string label;
};

/// Returns the ranks of a color, in the order of their keys. `members` are what the ranks of `group` said.
Chosen choose(const Member* members, int color, const Ranks& group) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (members[rank].color == color) ranks.push_back(rank);
  }
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return members[a].key < members[b].key; });
  if (ranks.empty()) return {std::make_shared<const Ranks>(0), ""};
  const std::uint64_t number = members[ranks.front()].number;
  for (int& rank : ranks) rank = group.world_rank(rank);
  const int leader = ranks.front();
  return {std::make_shared<const Ranks>(std::move(ranks), group.session()), derived_label(leader, number)};
}

int check_subset(const Communicator& parent, const Ranks& group) {
  for (int i = 0; i < group.size(); ++i) {
    if (parent.own_ranks()->position(group.world_rank(i)) == MPI_UNDEFINED) {
      return fail(MPI_ERR_GROUP, "the group holds rank %d of MPI_COMM_WORLD, which the communicator does not have",
                  group.world_rank(i));
    }
  }
  return MPI_SUCCESS;
}

/// Makes a new label for the ranks of the parent. Communicates.
int agree_on_label(Communicator& parent, std::string* label) {
  std::uint64_t number = canele_group_rank(parent.group()) == 0 ? take_number() : 0;
  Transfer exchange;
  int code = from_engine(canele_ibcast(parent.group(), &number, sizeof number, 0, nullptr, &exchange.engine));
  if (code == MPI_SUCCESS) code = exchange.wait(nullptr);
  if (code == MPI_SUCCESS) *label = derived_label(parent.first_member(), number);
  return code;
}

}  // namespace

int shorten_label(Communicator& parent, std::string* label) {
  return label->size() > kMostOfLabel ? agree_on_label(parent, label) : MPI_SUCCESS;
}

std::uint64_t take_number() { return next_number.fetch_add(1); }

std::string derived_label(int leader, std::uint64_t number) {
  return "mpi." + std::to_string(leader) + "." + std::to_string(number);
}

int publish(int code, Communicator* made, const ErrorHandlerUse& handler, MPI_Comm* handle) {
  if (code != MPI_SUCCESS) return code;
  std::atomic<Communicator*>* slot = communicators_pool.take();
  if (slot == nullptr) {
    made->drop_reference();
    return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another communicator");
  }
  close_retired();
  made->error_handler().inherit(handler);
  slot->store(made, std::memory_order_release);  // pairs with the acquire load in find_communicator
  *handle = CommunicatorPool::open(*slot);
  made->set_handle(*handle);
  return MPI_SUCCESS;
}

int duplicate_unnamed(Communicator& parent, Communicator** made) {
  std::string label;
  const int code = agree_on_label(parent, &label);
  return code == MPI_SUCCESS ? Communicator::create_like(parent, std::move(label), made) : code;
}

int duplicate(Communicator& parent, const InfoPairs& hints, MPI_Comm* made) {
  Communicator* comm = nullptr;
  const int code = duplicate_unnamed(parent, &comm);
  return code == MPI_SUCCESS ? publish_duplicate(parent, comm, hints, made) : code;
}

int duplicate_at_once(Communicator& parent, const InfoPairs& hints, MPI_Comm* made) {
  std::string label = parent.next_label();
  Communicator* comm = nullptr;
  int code = shorten_label(parent, &label);
  if (code == MPI_SUCCESS) code = Communicator::create_like(parent, std::move(label), &comm);
  return code == MPI_SUCCESS ? publish_duplicate(parent, comm, hints, made) : code;
}

int split(Communicator& parent, int color, int key, MPI_Comm* made) {
  std::vector<Member> all;
  const int code = exchange(parent, Member{color, key, take_number()}, &all);
  if (code != MPI_SUCCESS) return code;
  *made = MPI_COMM_NULL;
  if (color == MPI_UNDEFINED) return MPI_SUCCESS;
  const Inter* const inter = parent.inter();
  const Chosen own =
      choose(&all[inter == nullptr ? 0 : static_cast<std::size_t>(inter->own_begin)], color, *parent.own_ranks());
  const int rank = own.ranks->position(parent.own_ranks()->world_rank(parent.rank()));
  Communicator* comm = nullptr;
  if (inter == nullptr) {
    const int made_code = Communicator::create(engine(), own.ranks, rank, own.label, &comm);
    return publish(made_code, comm, parent.error_handler(), made);
  }
  const Chosen remote = choose(&all[static_cast<std::size_t>(inter->remote_begin)], color, *parent.ranks());
  if (remote.ranks->size() == 0) return MPI_SUCCESS;
  const int made_code = Communicator::create(engine(), remote.ranks, rank, inter->is_upper ? remote.label : own.label,
                                             &comm, std::make_unique<Inter>(own.ranks, *remote.ranks, inter->is_upper));
  return publish(made_code, comm, parent.error_handler(), made);
}

int create_together(Communicator& parent, const Ranks& group, MPI_Comm* made) {
  if (const int code = check_subset(parent, group); code != MPI_SUCCESS) return code;
  const int rank = group.position(parent.own_ranks()->world_rank(parent.rank()));
  const int color = parent.inter() == nullptr && group.size() > 0 ? group.world_rank(0) : 0;
  return split(parent, rank == MPI_UNDEFINED ? MPI_UNDEFINED : color, rank, made);
}

int agree(Communicator& parent, const RanksPointer& group, std::uint64_t tag, Communicator** made) {
  const int rank = group->position(parent.world_rank(parent.rank()));
  std::uint64_t number = rank == 0 ? take_number() : 0;
  const Buffer message = bytes_buffer(&number, sizeof number);
  canele_session_t* session = nullptr;
  int code = parent.agreements(&session);
  if (code != MPI_SUCCESS) return code;
  Batch batch(session, tag, static_cast<std::size_t>(group->size()));
  if (rank != 0) code = batch.receive(group->world_rank(0), message);
  for (int i = 1; rank == 0 && i < group->size() && code == MPI_SUCCESS; ++i) {
    code = batch.send(group->world_rank(i), message);
  }
  if (code == MPI_SUCCESS) code = batch.finish();
  if (code != MPI_SUCCESS) return code;
  return Communicator::create(engine(), group, rank, derived_label(group->world_rank(0), number), made);
}

int create_from_group(Communicator& parent, const RanksPointer& group, int tag, MPI_Comm* made) {
  *made = MPI_COMM_NULL;
  if (group->position(parent.world_rank(parent.rank())) == MPI_UNDEFINED) return MPI_SUCCESS;
  if (const int code = check_subset(parent, *group); code != MPI_SUCCESS) return code;
  Communicator* comm = nullptr;
  const int code = agree(parent, group, static_cast<std::uint64_t>(tag), &comm);
  return publish(code, comm, parent.error_handler(), made);
}

int hash_of_tag(const char* tag, const Ranks& group, std::uint64_t* hash) {
  if (strnlen(tag, MPI_MAX_STRINGTAG_LEN) == MPI_MAX_STRINGTAG_LEN)
    return fail(MPI_ERR_ARG, "the tag has more than %d characters", MPI_MAX_STRINGTAG_LEN - 1);
  *hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [hash](std::uint64_t value) { *hash = (*hash ^ value) * 0x100000001b3; };
  for (const char* c = tag; *c != '\0'; ++c) add(static_cast<unsigned char>(*c));
  for (int rank = 0; rank < group.size(); ++rank) add(static_cast<std::uint64_t>(group.world_rank(rank)) + 256);
  return MPI_SUCCESS;
}

int create_from_ranks(const RanksPointer& group, const char* tag, MPI_Errhandler handler, MPI_Comm* made) {
  *made = MPI_COMM_NULL;
  std::uint64_t hash = 0;
  ErrorHandlerUse use;
  int code = hash_of_tag(tag, *group, &hash);
  if (code == MPI_SUCCESS) code = use.set(ObjectKind::communicator, handler);
  if (code != MPI_SUCCESS || group->size() == 0) return code;
  if (group->position(canele_rank(engine())) == MPI_UNDEFINED)
    return fail(MPI_ERR_GROUP, "this process is not in the group");
  Communicator *base = nullptr, *comm = nullptr;
  code = get_base(&base);
  if (code == MPI_SUCCESS) code = agree(*base, group, hash, &comm);
  return publish(code, comm, use, made);
}

}  // namespace canele::mpi
