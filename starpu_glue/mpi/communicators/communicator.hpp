// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators: ranks, and the engine sessions that keep their messages apart. Usable from any thread.
//
// A communicator has several name spaces, because they need different ordering and each may use any tag:
//
//     label + ".p"  point to point         CANELE_ORDER_ACROSS_TAGS  tag = the user's
//     label + ".c"  collectives            the engine's group of its ranks
//     (others)      persistent collectives a group for each, with a label as MPI_Comm_idup makes them
//     label + ".n"  StarPU (nmad)          CANELE_ORDER_PER_TAG      tag = StarPU's 64 bits; opened at first use
//     label + ".g"  MPI_Comm_create_group  CANELE_ORDER_PER_TAG      tag = the call's; opened at first use
//     label + ".q"  partitioned messages   CANELE_ORDER_PER_TAG      tag: see messages/partitioned.hpp; at first use
//
// An intercommunicator has two groups without a common rank. Messages go to the remote one, so that its ranks are the
// list that a message looks into. That path is therefore the one of all communicators. Besides, it has:
//
//     label + ".c"          the engine's group of all ranks: those of the lower group, then those of the upper one
//     label + ".a" or ".b"  the engine's group of this rank's own group, lower or upper
//     label + ".g"          messages with which reductions end; opened at first use
//
// An error handler, attributes and hints belong to it. Without attributes it has a null pointer for them.
//
// Requests hold no references to communicators: counting them would cost two atomic operations per message. A freed
// communicator is retired instead. It stays open until MPI_Comm_free, or the creation of another communicator, finds
// that no request is on it. Both requests with a handle and requests of blocking calls count.
//
// The label is the same on every member and needs no server. It is "mpi.world", or "mpi.<leader>.<number>" with the
// leader's world rank and its running number, agreed by messages inside the parent. MPI_Comm_idup adds "i<number>" to
// the label of the parent: its ranks call it in one order, so they need no messages to agree.
//
// Rejected: one session with the kind of message in the tag. StarPU uses all 64 bits, and order across tags would void
// its priorities.
#pragma once

#include <canele/collectives.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "starpu_glue/mpi/communicators/group.hpp"
#include "starpu_glue/mpi/core/attributes.hpp"
#include "starpu_glue/mpi/core/error_handlers.hpp"
#include "starpu_glue/mpi/core/fast_calls.hpp"
#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/infos/info.hpp"

struct nm_session_s;

namespace canele::mpi {

struct Topology;

/// Makes the engine carry out a collective on the calling thread.
inline constexpr canele_collective_options_t blocking_options = {sizeof(canele_collective_options_t), 0, 0, 0, 0, 0, 1};

/// What only an intercommunicator has. Positions are those in the engine's group of all its ranks.
struct Inter {
  RanksPointer own;                          ///< the ranks of the local group
  bool is_upper;                             ///< they come behind the remote ones
  int own_begin, remote_begin;               ///< position of the first rank of each group
  canele_group_t* group = nullptr;           ///< the engine's group of `own`
  std::atomic<std::uint64_t> reductions{0};  ///< how many have begun: all ranks count alike

  Inter(RanksPointer own_ranks, const Ranks& remote, bool upper)
      : own(std::move(own_ranks)),
        is_upper(upper),
        own_begin(upper ? remote.size() : 0),
        remote_begin(upper ? 0 : own->size()) {}
};

/// Which ranks an engine's group has. Both are the same, except for an intercommunicator.
enum class Members : bool { all, own };

class Communicator {
 public:
  /// Opens the session and the group. Returns an MPI code; *made has one reference, for its handle. Of an
  /// intercommunicator, which gives `inter`, `ranks` are the remote ones, and `rank` is one of the local group.
  static int create(canele_engine_t* engine, RanksPointer ranks, int rank, std::string label, Communicator** made,
                    std::unique_ptr<Inter> inter = nullptr);
  /// Makes one with the same groups.
  static int create_like(const Communicator& model, std::string label, Communicator** made);

  int rank() const { return rank_; }
  /// The ranks to which messages go: of an intercommunicator, those of the remote group.
  int size() const { return size_; }
  const RanksPointer& ranks() const { return ranks_; }
  /// The ranks of the group that this rank is in.
  const RanksPointer& own_ranks() const { return inter_ == nullptr ? ranks_ : inter_->own; }
  /// All ranks in the engine's group: of an intercommunicator, those of both groups.
  int members() const { return canele_group_size(group_); }
  /// The world rank of the first of them.
  int first_member() const { return (inter_ == nullptr || inter_->is_upper ? ranks_ : inter_->own)->world_rank(0); }
  /// Null for an intracommunicator.
  Inter* inter() const { return inter_.get(); }
  bool has_rank(int rank) const { return static_cast<unsigned>(rank) < static_cast<unsigned>(size_); }
  int world_rank(int rank) const { return list_ == nullptr ? rank : list_[rank]; }

  MPI_Comm handle() const { return handle_; }
  void set_handle(MPI_Comm handle) { error_object_ = handle_ = handle; }

  canele_session_t* messages() const { return messages_; }
  canele_group_t* group() const { return group_; }
  /// Returns the label of a group for a persistent collective; "" if starts are said to be in one order, so that the
  /// group of all collectives serves. All ranks call it in one order, and also if their call then fails: labels count.
  std::string next_group_label();
  /// Opens a group like group() or, of an intercommunicator, like inter()->group, which the communicator owns. Without
  /// a label it returns those. Returns an MPI code. Throws std::bad_alloc.
  int open_group(Members members, const std::string& label, canele_group_t** group);
  /// Closes a group of open_group(), or nothing if it is null. A group that is busy stays until the communicator ends.
  void close_group(canele_group_t* group);
  /// Opens the session for operations in which only some members take part; collectives need all. Returns an MPI code.
  int agreements(canele_session_t** session);
  /// Opens the session for messages of the native API, see bridge.cpp. Returns an MPI code.
  int native(canele_session_t** session);

  /// Opens the session of partitioned messages, and counts: *channel is the number of earlier messages to, or from, a
  /// rank of MPI_COMM_WORLD with the tag. Returns an MPI code. Throws std::bad_alloc.
  int next_partitioned(int world_rank, int tag, bool receives, canele_session_t** session, std::uint64_t* channel);

  ErrorHandlerUse& error_handler() { return error_handler_; }
  /// Returns what errors of the communicator are reported to.
  ErrorTarget error_target() const { return {error_handler_.get(), error_object_}; }
  /// Names the window to which the communicator belongs: errors are those of the window.
  void set_window(MPI_Win window) { error_object_ = window; }

  Attributes& attributes() { return attributes_; }
  /// Returns the hints that the library knows, with their values.
  InfoPairs hints() const;
  void take_hints(const InfoPairs& given);

  void name(char* text, int* length) const;
  void set_name(const char* text);

  /// The virtual topology, which the floor of topologies defines; null: none. Set before the program knows the handle.
  const std::shared_ptr<const Topology>& topology() const { return topology_; }
  void set_topology(std::shared_ptr<const Topology> topology) { topology_ = std::move(topology); }

  /// Memory for buffered sends of this communicator only.
  SendBufferPlace& send_buffer() { return send_buffer_; }

  const std::string& label() const { return label_; }
  /// Used by starpu_glue/nmad only; see session.cpp there.
  std::atomic<nm_session_s*>& nmad() { return nmad_; }
  /// Returns the label of the next duplicate that is made without messages.
  std::string next_label() { return label_ + "i" + std::to_string(duplicates_.fetch_add(1)); }

  void add_reference() { references_.fetch_add(1, std::memory_order_relaxed); }
  /// Drops a reference. The last one retires the communicator: it is closed as soon as no request is on it.
  void drop_reference();
  /// Marks the communicator as used by a request. Called during close_retired().
  void mark_in_use() { in_use_ = true; }

 private:
  Communicator(RanksPointer ranks, int rank, std::string label, std::unique_ptr<Inter> inter);
  int make_group(canele_engine_t* engine, Members members, const std::string& label, canele_group_t** group) const;
  ~Communicator() = default;
  int open_once(canele_session_t*& session, const char* suffix);
  void close();
  friend void close_retired();
  friend void close_groups();
  friend void forget_communicators();

  // Members that a message needs, including those of the ranks.
  canele_session_t* messages_ = nullptr;
  const int* list_;
  int size_;
  std::atomic<int> references_{1};
  ErrorHandlerUse error_handler_;
  int rank_;
  canele_group_t* group_ = nullptr;
  void* error_object_ = nullptr;  // handle of the object of error_handler_

  MPI_Comm handle_ = MPI_COMM_NULL;
  Attributes attributes_;
  RanksPointer ranks_;
  std::string label_;
  std::unique_ptr<Inter> inter_;
  SendBufferPlace send_buffer_;
  std::shared_ptr<const Topology> topology_;
  canele_session_t* agreements_ = nullptr;                        // guarded by the lock in communicator.cpp
  canele_session_t* native_ = nullptr;                            // guarded by the lock in communicator.cpp
  canele_session_t* partitioned_ = nullptr;                       // guarded by the lock in communicator.cpp
  std::map<std::tuple<int, int, bool>, std::uint64_t> channels_;  // of next_partitioned(); guarded by that lock
  std::atomic<nm_session_s*> nmad_{nullptr};
  std::atomic<std::uint64_t> duplicates_{1};  // number of the next one of next_label()
  std::string name_;                          // guarded by the lock in communicator.cpp
  InfoPairs hints_;                           // those given; guarded by the lock in communicator.cpp
  std::vector<canele_group_t*> more_groups_;  // of open_group(); guarded by the lock in communicator.cpp
  bool retired_ = false, in_use_ = false;     // guarded by the lock in communicator.cpp
  Communicator* next_ = nullptr;              // list of all communicators, for forget_communicators
  Communicator* previous_ = nullptr;
};

/// Keeps a communicator while a blocking call is in it, because the program may free it meanwhile. For calls whose
/// request is not in the request pool, where close_retired() would see it.
class InUse {
 public:
  explicit InUse(Communicator& comm) : comm_(comm) { comm_.add_reference(); }
  ~InUse() { comm_.drop_reference(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  Communicator& comm_;
};

constexpr std::uint32_t kCommunicatorsReserved = 0x103;  ///< up to MPI_COMM_SELF
using CommunicatorPool =
    HandlePool<std::atomic<Communicator*>, MPI_Comm, Kind::communicator, kCommunicatorsReserved, 4096>;
extern constinit CommunicatorPool communicators_pool;

/// Returns the communicator of a live handle, else nullptr.
inline Communicator* find_communicator(MPI_Comm handle) {
  std::atomic<Communicator*>* slot = communicators_pool.find(handle);
  return slot == nullptr ? nullptr : slot->load(std::memory_order_acquire);
}

/// Returns MPI_COMM_WORLD while MPI runs, else nullptr.
inline Communicator* world() { return find_communicator(MPI_COMM_WORLD); }

/// Returns MPI_COMM_WORLD while MPI runs and no profile is wanted, so that a call has no bookkeeping to do; else
/// nullptr.
inline Communicator* fast_world() { return fast_calls.world.load(std::memory_order_acquire); }
void enable_fast_path(bool enable);

/// Looks a communicator up like find_communicator, but returns an MPI code and sets the detail.
int get_communicator(MPI_Comm handle, Communicator** found);
/// Check the kind, for functions of which the standard says that they take one kind only. They return MPI codes.
int expect_intracommunicator(const Communicator& comm);
int expect_intercommunicator(const Communicator& comm);

/// Calls mark_in_use() of each communicator that a request is on. MPI_Init sets it: requests stand above.
using MarkInUse = void (*)();
extern constinit MarkInUse mark_all_in_use;

/// Makes MPI_COMM_WORLD and MPI_COMM_SELF. Returns an MPI code.
int open_world(canele_engine_t* engine);
/// Frees them, while sessions still need the engine.
void close_world();
/// Returns MPI_COMM_WORLD or, if there is none, the communicator of get_base().
int get_any_communicator(Communicator** found);
/// Returns a communicator of all ranks, without a handle, for the library itself. It is made at first use.
int get_base(Communicator** found);
/// Closes the freed communicators that no request is on any more.
void close_retired();
/// Closes all groups before the engine is finalized: the engine does not track them.
void close_groups();
/// Frees every communicator. The engine and its sessions no longer exist.
void forget_communicators();

/// Deletes the attributes, waits for the buffered messages of its own memory, and frees the handle. The communicator
/// ends later.
int free_communicator(MPI_Comm* handle);
/// Frees it when all of its ranks have called this. Blocks.
int disconnect_communicator(MPI_Comm* handle);
/// Deletes the attributes of MPI_COMM_SELF, with which MPI_Finalize begins. Returns an MPI code.
int delete_attributes_of_self();

}  // namespace canele::mpi
