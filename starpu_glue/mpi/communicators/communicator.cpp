// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators: creation by agreement within the parent, sessions and groups, handles. Look-ups take no lock.
//
// Making a communicator costs one message exchange in the parent and needs no server. The leader's world rank and its
// running number make a name that no other communicator of the job ever has.
#include "starpu_glue/mpi/communicators/communicator.hpp"

#include <canele/one_sided.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/datatypes/transfer.hpp"

namespace canele::mpi {

constinit CommunicatorPool communicators_pool;
constinit MarkInUse mark_all_in_use = nullptr;
constinit std::atomic<Communicator*> world_of_fast_calls{nullptr};

namespace {

constinit std::atomic<std::uint64_t> next_number{1};
constinit std::mutex lock;  // guards the list of all communicators, and names
constinit Communicator* all = nullptr;

constexpr std::size_t kMostOfLabel = 38;  // a group's label has up to 40 bytes, with ".c"

/// Hints that MPI defines: what the program will not do. The library remembers them.
constexpr const char* kStrictOrder = "mpi_assert_strict_persistent_collective_ordering";
constexpr const char* kHints[] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
                                  "mpi_assert_allow_overtaking", kStrictOrder};

std::string derived_label(int leader, std::uint64_t number) {
  return "mpi." + std::to_string(leader) + "." + std::to_string(number);
}

int open_session(canele_engine_t* engine, const std::string& label, unsigned flags, canele_session_t** session) {
  return from_engine(canele_session_open(engine, label.c_str(), flags, session));
}

/// Makes a predefined communicator under its handle. The handle becomes valid when nothing can fail any more.
int create_predefined(canele_engine_t* engine, RanksPointer ranks, int rank, MPI_Comm handle, const char* label,
                      const char* name, Communicator** made) {
  std::atomic<Communicator*>* slot = communicators_pool.reserved(handle);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory for handles of communicators");
  const int code = Communicator::create(engine, std::move(ranks), rank, label, made);
  if (code != MPI_SUCCESS) return code;
  (*made)->set_handle(handle);
  (*made)->set_name(name);
  slot->store(*made, std::memory_order_release);  // pairs with the acquire load in find_communicator
  return MPI_SUCCESS;
}

/// Registers a new communicator under a handle; inherits the parent's error handler.
int publish(Communicator& parent, Communicator* made, MPI_Comm* handle) {
  std::atomic<Communicator*>* slot = communicators_pool.take();
  if (slot == nullptr) {
    made->drop_reference();
    return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another communicator");
  }
  close_retired();
  made->error_handler().inherit(parent.error_handler());
  slot->store(made, std::memory_order_release);  // pairs with the acquire load in find_communicator
  *handle = CommunicatorPool::open(*slot);
  made->set_handle(*handle);
  return MPI_SUCCESS;
}

/// Registers a duplicate like publish(). It gets copies of the attributes. After an error nothing is left of it.
int publish_duplicate(Communicator& parent, Communicator* made, const InfoPairs& hints, MPI_Comm* handle) {
  made->set_topology(parent.topology());
  made->take_hints(hints);
  MPI_Comm published = MPI_COMM_NULL;
  if (const int code = publish(parent, made, &published); code != MPI_SUCCESS) return code;
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

/// Gives every rank what each of them has to say. Returns an MPI code.
template <class T>
int exchange(Communicator& parent, const T& mine, std::vector<T>* values) {
  values->resize(static_cast<std::size_t>(parent.size()));
  const canele_parts_t parts{sizeof mine, nullptr, nullptr};
  Transfer transfer;
  const int code =
      from_engine(canele_iallgather(parent.group(), &mine, values->data(), &parts, nullptr, &transfer.engine));
  return code == MPI_SUCCESS ? transfer.wait(nullptr) : code;
}

/// What a rank tells the others so that they can find out whether they share memory with it.
struct MemoryOffer {
  unsigned char key[CANELE_KEY_SIZE];
  std::int32_t error;  ///< MPI code: the rank has no memory
};

/// Returns the first rank whose memory this process can map.
int first_sharer(const Communicator& comm, const std::vector<MemoryOffer>& offers) {
  for (int rank = 0; rank < comm.rank(); ++rank) {
    canele_key_t* key = nullptr;
    void* address = nullptr;
    if (canele_key_open(engine(), offers[static_cast<std::size_t>(rank)].key, &key) != CANELE_OK) continue;
    const bool is_shared = canele_key_map(key, &address) == CANELE_OK;
    canele_key_close(key);
    if (is_shared) return rank;
  }
  return comm.rank();
}

/// Makes a new label for the ranks of the parent. Communicates.
int agree_on_label(Communicator& parent, std::string* label) {
  std::uint64_t number = parent.rank() == 0 ? next_number.fetch_add(1) : 0;
  Transfer exchange;
  int code = from_engine(canele_ibcast(parent.group(), &number, sizeof number, 0, nullptr, &exchange.engine));
  if (code == MPI_SUCCESS) code = exchange.wait(nullptr);
  if (code == MPI_SUCCESS) *label = derived_label(parent.world_rank(0), number);
  return code;
}

int check_subset(const Communicator& parent, const Ranks& group) {
  for (int i = 0; i < group.size(); ++i) {
    if (parent.ranks()->position(group.world_rank(i)) == MPI_UNDEFINED) {
      return fail(MPI_ERR_GROUP, "the group holds rank %d of MPI_COMM_WORLD, which the communicator does not have",
                  group.world_rank(i));
    }
  }
  return MPI_SUCCESS;
}

}  // namespace

Communicator::Communicator(RanksPointer ranks, int rank, std::string label)
    : list_(ranks->list()), size_(ranks->size()), rank_(rank), ranks_(std::move(ranks)), label_(std::move(label)) {
  const std::lock_guard guard(lock);
  next_ = all;
  if (all != nullptr) all->previous_ = this;
  all = this;
}

int Communicator::create(canele_engine_t* engine, RanksPointer ranks, int rank, std::string label,
                         Communicator** made) {
  auto* comm = new (std::nothrow) Communicator(std::move(ranks), rank, std::move(label));
  if (comm == nullptr) return fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  int code = open_session(engine, comm->label_ + ".p", CANELE_ORDER_ACROSS_TAGS, &comm->messages_);
  if (code == MPI_SUCCESS) {
    code = from_engine(canele_group_create(engine, (comm->label_ + ".c").c_str(), comm->ranks_->list(),
                                           static_cast<std::size_t>(comm->size()), &comm->group_));
  }
  if (code != MPI_SUCCESS) {
    comm->drop_reference();
    return code;
  }
  *made = comm;
  return MPI_SUCCESS;
}

void Communicator::drop_reference() {
  // acq_rel: pairs with itself, so that the last drop follows all uses.
  if (references_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  {
    const std::lock_guard guard(lock);
    retired_ = true;
  }
  close_retired();
}

void Communicator::close() {
  if (messages_ != nullptr) canele_session_close(messages_);
  if (group_ != nullptr) canele_group_destroy(group_);
  for (canele_group_t* const group : more_groups_) canele_group_destroy(group);
  if (agreements_ != nullptr) canele_session_close(agreements_);
  if (native_ != nullptr) canele_session_close(native_);
  if (partitioned_ != nullptr) canele_session_close(partitioned_);
  (previous_ != nullptr ? previous_->next_ : all) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  delete this;
}

void close_retired() {
  const std::lock_guard guard(lock);
  bool any = false;
  for (Communicator* comm = all; comm != nullptr; comm = comm->next_) {
    comm->in_use_ = false;
    any = any || comm->retired_;
  }
  if (!any) return;
  if (mark_all_in_use != nullptr) mark_all_in_use();
  for (Communicator *comm = all, *next; comm != nullptr; comm = next) {
    next = comm->next_;
    if (comm->retired_ && !comm->in_use_) comm->close();
  }
}

/// Opens a session of the communicator at its first use. Under the lock.
int Communicator::open_once(canele_session_t*& session, const char* suffix) {
  if (session != nullptr) return MPI_SUCCESS;
  return open_session(canele_session_engine(messages_), label_ + suffix, CANELE_ORDER_PER_TAG, &session);
}

int Communicator::agreements(canele_session_t** session) {
  const std::lock_guard guard(lock);
  const int code = open_once(agreements_, ".g");
  *session = agreements_;
  return code;
}

int Communicator::native(canele_session_t** session) {
  const std::lock_guard guard(lock);
  const int code = open_once(native_, ".u");
  *session = native_;
  return code;
}

int Communicator::next_partitioned(int world_rank, int tag, bool receives, canele_session_t** session,
                                   std::uint64_t* channel) {
  const std::lock_guard guard(lock);
  if (const int code = open_once(partitioned_, ".q"); code != MPI_SUCCESS) return code;
  *session = partitioned_;
  *channel = channels_[{world_rank, tag, receives}]++;
  return MPI_SUCCESS;
}

std::string Communicator::next_group_label() {
  const InfoPairs known = hints();
  return *find_value(known, kStrictOrder) == "true" ? "" : next_label();
}

int Communicator::open_group(std::string label, canele_group_t** group) {
  if (label.empty()) {
    *group = group_;
    return MPI_SUCCESS;
  }
  int code = label.size() > kMostOfLabel ? agree_on_label(*this, &label) : MPI_SUCCESS;
  if (code != MPI_SUCCESS) return code;
  const std::lock_guard guard(lock);
  more_groups_.reserve(more_groups_.size() + 1);
  code = from_engine(canele_group_create(canele_session_engine(messages_), (label + ".c").c_str(), ranks_->list(),
                                         static_cast<std::size_t>(size_), group));
  if (code == MPI_SUCCESS) more_groups_.push_back(*group);
  return code;
}

void Communicator::close_group(canele_group_t* group) {
  const std::lock_guard guard(lock);
  if (std::erase(more_groups_, group) > 0) canele_group_destroy(group);
}

void Communicator::name(char* text, int* length) const {
  const std::lock_guard guard(lock);
  *length = std::snprintf(text, MPI_MAX_OBJECT_NAME, "%s", name_.c_str());
}

void Communicator::set_name(const char* text) {
  const std::lock_guard guard(lock);
  name_.assign(text, strnlen(text, MPI_MAX_OBJECT_NAME - 1));
}

InfoPairs Communicator::hints() const {
  const std::lock_guard guard(lock);
  InfoPairs known;
  for (const char* const key : kHints) {
    const std::string* const value = find_value(hints_, key);
    set_value(known, key, value == nullptr ? "false" : *value);
  }
  return known;
}

void Communicator::take_hints(const InfoPairs& given) {
  const std::lock_guard guard(lock);
  for (const char* const key : kHints) {
    if (const std::string* const value = find_value(given, key)) set_value(hints_, key, *value);
  }
}

int get_communicator(MPI_Comm handle, Communicator** found) {
  *found = find_communicator(handle);
  if (*found != nullptr) return MPI_SUCCESS;
  if (handle == MPI_COMM_NULL) return fail(MPI_ERR_COMM, "the communicator is MPI_COMM_NULL");
  return fail(MPI_ERR_COMM, "0x%zx is not a communicator, or was freed", handle_bits(handle));
}

/// Switches the fast path of calls on or off. Release: pairs with the acquire load in fast_world.
void enable_fast_path(bool enable) { world_of_fast_calls.store(enable ? world() : nullptr, std::memory_order_release); }

int open_world(canele_engine_t* engine) {
  const int rank = canele_rank(engine);
  Communicator *world = nullptr, *self = nullptr;
  int code = create_predefined(engine, std::make_shared<const Ranks>(canele_size(engine)), rank, MPI_COMM_WORLD,
                               "mpi.world", "MPI_COMM_WORLD", &world);
  if (code != MPI_SUCCESS) return code;
  code = create_predefined(engine, std::make_shared<const Ranks>(std::vector<int>{rank}), 0, MPI_COMM_SELF, "mpi.self",
                           "MPI_COMM_SELF", &self);
  if (code != MPI_SUCCESS) {
    world->drop_reference();
    return code;
  }
  for (const MPI_Comm handle : {MPI_COMM_WORLD, MPI_COMM_SELF})
    CommunicatorPool::open(*communicators_pool.reserved(handle));
  return MPI_SUCCESS;
}

void close_groups() {
  const std::lock_guard guard(lock);
  for (Communicator* comm = all; comm != nullptr; comm = comm->next_) {
    if (canele_group_destroy(comm->group_) == CANELE_OK) comm->group_ = nullptr;
    std::erase_if(comm->more_groups_, [](canele_group_t* group) { return canele_group_destroy(group) == CANELE_OK; });
  }
}

void forget_communicators() {
  for (const MPI_Comm handle : {MPI_COMM_WORLD, MPI_COMM_SELF})
    CommunicatorPool::close(*communicators_pool.reserved(handle));
  const std::lock_guard guard(lock);
  while (all != nullptr) {
    Communicator* comm = all;
    all = comm->next_;
    if (communicators_pool.find(comm->handle_) != nullptr) communicators_pool.release(comm->handle_);
    delete comm;
  }
}

int duplicate_unnamed(Communicator& parent, Communicator** made) {
  std::string label;
  const int code = agree_on_label(parent, &label);
  return code == MPI_SUCCESS ? Communicator::create(engine(), parent.ranks(), parent.rank(), std::move(label), made)
                             : code;
}

int duplicate(Communicator& parent, const InfoPairs& hints, MPI_Comm* made) {
  Communicator* comm = nullptr;
  const int code = duplicate_unnamed(parent, &comm);
  return code == MPI_SUCCESS ? publish_duplicate(parent, comm, hints, made) : code;
}

int duplicate_at_once(Communicator& parent, const InfoPairs& hints, MPI_Comm* made) {
  std::string label = parent.next_label();
  if (label.size() > kMostOfLabel) return duplicate(parent, hints, made);
  Communicator* comm = nullptr;
  const int code = Communicator::create(engine(), parent.ranks(), parent.rank(), std::move(label), &comm);
  return code == MPI_SUCCESS ? publish_duplicate(parent, comm, hints, made) : code;
}

int split(Communicator& parent, int color, int key, MPI_Comm* made) {
  struct Member {
    int color;
    int key;
    std::uint64_t number;  // used if this rank becomes a leader
  };
  std::vector<Member> all_members;
  int code = exchange(parent, Member{color, key, next_number.fetch_add(1)}, &all_members);
  if (code != MPI_SUCCESS) return code;
  *made = MPI_COMM_NULL;
  if (color == MPI_UNDEFINED) return MPI_SUCCESS;
  std::vector<int> members;
  for (int rank = 0; rank < parent.size(); ++rank) {
    if (all_members[static_cast<std::size_t>(rank)].color == color) members.push_back(rank);
  }
  const auto key_of = [&](int rank) { return all_members[static_cast<std::size_t>(rank)].key; };
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
  const int rank = static_cast<int>(std::find(members.begin(), members.end(), parent.rank()) - members.begin());
  const int leader = members.front();
  const std::uint64_t number = all_members[static_cast<std::size_t>(leader)].number;
  for (int& member : members) member = parent.world_rank(member);
  Communicator* comm = nullptr;
  code = Communicator::create(engine(), std::make_shared<const Ranks>(std::move(members)), rank,
                              derived_label(parent.world_rank(leader), number), &comm);
  return code == MPI_SUCCESS ? publish(parent, comm, made) : code;
}

int split_by_memory(Communicator& parent, bool is_wanted, int key, MPI_Comm* made) {
  void* base = nullptr;
  canele_memory_t* memory = nullptr;
  MemoryOffer mine{};
  mine.error = from_engine(canele_memory_allocate(engine(), sizeof(std::uint64_t), nullptr, &base, &memory));
  if (memory != nullptr) canele_memory_key(memory, mine.key);
  std::vector<MemoryOffer> offers;
  int code = exchange(parent, mine, &offers);
  for (const MemoryOffer& offer : offers) {
    if (code == MPI_SUCCESS && offer.error != MPI_SUCCESS)
      code = mine.error != MPI_SUCCESS ? mine.error : fail(offer.error, "another rank has no memory to share");
  }
  if (code == MPI_SUCCESS) code = split(parent, is_wanted ? first_sharer(parent, offers) : MPI_UNDEFINED, key, made);
  if (memory != nullptr) canele_memory_free(memory);  // every rank has mapped what it can: split has met them
  return code;
}

int create_together(Communicator& parent, const Ranks& group, MPI_Comm* made) {
  if (const int code = check_subset(parent, group); code != MPI_SUCCESS) return code;
  const int rank = group.position(parent.world_rank(parent.rank()));
  return split(parent, rank == MPI_UNDEFINED ? MPI_UNDEFINED : group.world_rank(0), rank, made);
}

int create_from_group(Communicator& parent, const RanksPointer& group, int tag, MPI_Comm* made) {
  const int rank = group->position(parent.world_rank(parent.rank()));
  *made = MPI_COMM_NULL;
  if (rank == MPI_UNDEFINED) return MPI_SUCCESS;
  if (const int code = check_subset(parent, *group); code != MPI_SUCCESS) return code;
  std::uint64_t number = rank == 0 ? next_number.fetch_add(1) : 0;
  const Buffer message = bytes_buffer(&number, sizeof number);
  canele_session_t* session = nullptr;
  int code = parent.agreements(&session);
  if (code != MPI_SUCCESS) return code;
  Batch batch(session, static_cast<unsigned>(tag), static_cast<std::size_t>(group->size()));
  if (rank != 0) code = batch.receive(group->world_rank(0), message);
  for (int i = 1; rank == 0 && i < group->size() && code == MPI_SUCCESS; ++i) {
    code = batch.send(group->world_rank(i), message);
  }
  if (code == MPI_SUCCESS) code = batch.finish();
  if (code != MPI_SUCCESS) return code;
  Communicator* comm = nullptr;
  code = Communicator::create(engine(), group, rank, derived_label(group->world_rank(0), number), &comm);
  return code == MPI_SUCCESS ? publish(parent, comm, made) : code;
}

int free_communicator(MPI_Comm* handle) {
  Communicator* comm = nullptr;
  if (const int code = get_communicator(*handle, &comm); code != MPI_SUCCESS) return code;
  if (*handle == MPI_COMM_WORLD || *handle == MPI_COMM_SELF) {
    return fail(MPI_ERR_COMM, "MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed");
  }
  if (comm->attributes().any()) {
    if (const int code = comm->attributes().remove_all(*handle); code != MPI_SUCCESS) return code;
  }
  communicators_pool.release(*handle);
  *handle = MPI_COMM_NULL;
  comm->drop_reference();
  return MPI_SUCCESS;
}

int delete_attributes_of_self() {
  Communicator* const self = find_communicator(MPI_COMM_SELF);
  return self == nullptr ? MPI_SUCCESS : self->attributes().remove_all(MPI_COMM_SELF);
}

}  // namespace canele::mpi
