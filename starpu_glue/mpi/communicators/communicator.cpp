// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators: sessions and groups, handles. Look-ups take no lock.
#include "starpu_glue/mpi/communicators/communicator.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "starpu_glue/mpi/core/device.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {

constinit CommunicatorPool communicators_pool;
constinit MarkInUse mark_all_in_use = nullptr;

namespace {

constinit std::mutex lock;  // guards the list of all communicators, and names
constinit Communicator* all = nullptr;
constinit std::mutex making_base;
constinit Communicator* base_of_library = nullptr;  // guarded by making_base

/// Hints that MPI defines: what the program will not do. The library remembers them.
constexpr const char* kStrictOrder = "mpi_assert_strict_persistent_collective_ordering";
constexpr const char* kHints[] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
                                  "mpi_assert_allow_overtaking", kStrictOrder};

int open_session(canele_engine_t* engine, const std::string& label, unsigned flags, canele_session_t** session) {
  note_devices();  // the program may have loaded its GPU library since the last one
  return from_engine(canele_session_open(engine, label.c_str(), flags, session));
}

int create_group(canele_engine_t* engine, const std::string& label, const int* ranks, int count,
                 canele_group_t** group) {
  return from_engine(canele_group_create(engine, label.c_str(), ranks, static_cast<std::size_t>(count), group));
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

/// Finds a communicator that the program has made.
int get_own_communicator(MPI_Comm handle, Communicator** found) {
  const int code = get_communicator(handle, found);
  if (code == MPI_SUCCESS && (handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF))
    return fail(MPI_ERR_COMM, "MPI_COMM_WORLD and MPI_COMM_SELF cannot be freed");
  return code;
}

}  // namespace

Communicator::Communicator(RanksPointer ranks, int rank, std::string label, std::unique_ptr<Inter> inter)
    : list_(ranks->list()),
      size_(ranks->size()),
      rank_(rank),
      ranks_(std::move(ranks)),
      label_(std::move(label)),
      inter_(std::move(inter)) {
  const std::lock_guard guard(lock);
  next_ = all;
  if (all != nullptr) all->previous_ = this;
  all = this;
}

int Communicator::create(canele_engine_t* engine, RanksPointer ranks, int rank, std::string label, Communicator** made,
                         std::unique_ptr<Inter> inter) {
  auto* comm = new (std::nothrow) Communicator(std::move(ranks), rank, std::move(label), std::move(inter));
  if (comm == nullptr) return fail(MPI_ERR_NO_MEM, "no memory for another communicator");
  int code = open_session(engine, comm->label_ + ".p", CANELE_ORDER_ACROSS_TAGS, &comm->messages_);
  if (code == MPI_SUCCESS) code = comm->make_group(engine, Members::all, comm->label_, &comm->group_);
  if (code == MPI_SUCCESS && comm->inter_ != nullptr)
    code = comm->make_group(engine, Members::own, comm->label_, &comm->inter_->group);
  if (code != MPI_SUCCESS) {
    comm->drop_reference();
    return code;
  }
  *made = comm;
  return MPI_SUCCESS;
}

int Communicator::make_group(canele_engine_t* engine, Members members, const std::string& label,
                             canele_group_t** group) const {
  if (inter_ == nullptr) return create_group(engine, label + ".c", ranks_->list(), size_, group);
  std::vector<int> all;
  for (const Ranks* one :
       {inter_->is_upper ? ranks_.get() : inter_->own.get(), inter_->is_upper ? inter_->own.get() : ranks_.get()}) {
    for (int rank = 0; rank < one->size(); ++rank) all.push_back(one->world_rank(rank));
  }
  if (members == Members::all)
    return create_group(engine, label + ".c", all.data(), static_cast<int>(all.size()), group);
  const int* const own = all.data() + inter_->own_begin;
  return create_group(engine, label + (inter_->is_upper ? ".b" : ".a"), own, inter_->own->size(), group);
}

int Communicator::create_like(const Communicator& model, std::string label, Communicator** made) {
  std::unique_ptr<Inter> inter;
  if (model.inter_ != nullptr)
    inter = std::make_unique<Inter>(model.inter_->own, *model.ranks_, model.inter_->is_upper);
  return create(engine(), model.ranks_, model.rank_, std::move(label), made, std::move(inter));
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
  if (inter_ != nullptr && inter_->group != nullptr) canele_group_destroy(inter_->group);
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

int Communicator::open_group(Members members, const std::string& label, canele_group_t** group) {
  if (label.empty()) {
    *group = members == Members::own && inter_ != nullptr ? inter_->group : group_;
    return MPI_SUCCESS;
  }
  const std::lock_guard guard(lock);
  more_groups_.reserve(more_groups_.size() + 1);
  const int code = make_group(canele_session_engine(messages_), members, label, group);
  if (code == MPI_SUCCESS) more_groups_.push_back(*group);
  return code;
}

void Communicator::close_group(canele_group_t* group) {
  const std::lock_guard guard(lock);
  const auto found = std::find(more_groups_.begin(), more_groups_.end(), group);
  if (found != more_groups_.end() && canele_group_destroy(group) == CANELE_OK) more_groups_.erase(found);
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

int expect_intracommunicator(const Communicator& comm) {
  if (comm.inter() == nullptr) return MPI_SUCCESS;
  return fail(MPI_ERR_COMM, "the communicator is an intercommunicator; expected: an intracommunicator");
}

int expect_intercommunicator(const Communicator& comm) {
  if (comm.inter() != nullptr) return MPI_SUCCESS;
  return fail(MPI_ERR_COMM, "the communicator is an intracommunicator; expected: an intercommunicator");
}

/// Switches the fast path of calls on or off. Release: pairs with the acquire load in fast_world.
void enable_fast_path(bool enable) { fast_calls.world.store(enable ? world() : nullptr, std::memory_order_release); }

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

void close_world() {
  for (const MPI_Comm handle : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    std::atomic<Communicator*>& slot = *communicators_pool.reserved(handle);
    CommunicatorPool::close(slot);
    slot.load(std::memory_order_acquire)->drop_reference();
  }
}

int get_any_communicator(Communicator** found) {
  *found = world();
  return *found != nullptr ? MPI_SUCCESS : get_base(found);
}

int get_base(Communicator** found) {
  const std::lock_guard guard(making_base);
  int code = MPI_SUCCESS;
  if (base_of_library == nullptr) {
    const auto ranks = std::make_shared<const Ranks>(canele_size(engine()));
    code = Communicator::create(engine(), ranks, canele_rank(engine()), "mpi.base", &base_of_library);
  }
  *found = base_of_library;
  return code;
}

void close_groups() {
  const std::lock_guard guard(lock);
  for (Communicator* comm = all; comm != nullptr; comm = comm->next_) {
    if (canele_group_destroy(comm->group_) == CANELE_OK) comm->group_ = nullptr;
    std::erase_if(comm->more_groups_, [](canele_group_t* group) { return canele_group_destroy(group) == CANELE_OK; });
    Inter* const inter = comm->inter();
    if (inter != nullptr && canele_group_destroy(inter->group) == CANELE_OK) inter->group = nullptr;
  }
}

void forget_communicators() {
  for (const MPI_Comm handle : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    if (find_communicator(handle) != nullptr) CommunicatorPool::close(*communicators_pool.reserved(handle));
  }
  base_of_library = nullptr;
  const std::lock_guard guard(lock);
  while (all != nullptr) {
    Communicator* comm = all;
    all = comm->next_;
    if (communicators_pool.find(comm->handle_) != nullptr) communicators_pool.release(comm->handle_);
    delete comm;
  }
}

int free_communicator(MPI_Comm* handle) {
  Communicator* comm = nullptr;
  if (const int code = get_own_communicator(*handle, &comm); code != MPI_SUCCESS) return code;
  if (comm->attributes().any()) {
    if (const int code = comm->attributes().remove_all(*handle); code != MPI_SUCCESS) return code;
  }
  if (SendBuffer* const buffer = comm->send_buffer().get()) buffer->empty();
  communicators_pool.release(*handle);
  *handle = MPI_COMM_NULL;
  comm->drop_reference();
  return MPI_SUCCESS;
}

int disconnect_communicator(MPI_Comm* handle) {
  Communicator* comm = nullptr;
  if (const int code = get_own_communicator(*handle, &comm); code != MPI_SUCCESS) return code;
  const int code = from_engine(canele_ibarrier(comm->group(), &blocking_options, nullptr));
  return code == MPI_SUCCESS ? free_communicator(handle) : code;
}

int delete_attributes_of_self() {
  Communicator* const self = find_communicator(MPI_COMM_SELF);
  return self == nullptr ? MPI_SUCCESS : self->attributes().remove_all(MPI_COMM_SELF);
}

}  // namespace canele::mpi
