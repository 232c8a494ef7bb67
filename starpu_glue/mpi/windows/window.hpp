// SPDX-License-Identifier: BSD-3-Clause
//
// Windows: memory of each rank of a communicator that all of its ranks access by one-sided operations.
//
// This file has the object, its creation and its end. window_access has the operations, window_sync says when they are
// allowed and when they are over. Everything is done with the engine's one-sided operations, <canele/one_sided.h>.
//
//     Window ─▶ own communicator          error handler, name, group for collectives, requests of Rput
//            ─▶ memory, control           this rank's part, and the word that locks it
//            ─▶ targets[rank] ─▶ card     keys of that rank's memory and control, size, unit, notification slots
//                             ─▶ keys     opened at first use
//            ─▶ lane                      all operations of the window: their order is that of accumulates
//
// Creation is one broadcast, which agrees on the label of the communicator, and one allgather of the cards. A card is
// 160 bytes, and a target some more, for each rank of each window.
//
// Any thread. Operations and synchronisation of one window may come from several threads, as MPI allows. `mutex` is
// held for short times only, never while a thread waits for another rank.
#pragma once

#include <canele/one_sided.h>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "starpu_glue/mpi/collectives/collectives.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/attributes.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/handles.hpp"
#include "starpu_glue/mpi/datatypes/type.hpp"
#include "starpu_glue/mpi/infos/info.hpp"
#include "starpu_glue/mpi/windows/control.hpp"

namespace canele::mpi {

/// What a rank tells the others at the creation of a window.
struct WindowCard {
  unsigned char memory[CANELE_KEY_SIZE];   ///< zero bytes: it has no memory
  unsigned char control[CANELE_KEY_SIZE];  ///< key of a WindowControl
  std::uint64_t first;                     ///< offset of the window in the memory of the key, see register_window
  std::uint64_t size;                      ///< bytes of the window
  std::int32_t unit;                       ///< bytes of one step of a displacement
  std::uint32_t posts, completes;          ///< slots of its notifications
  std::int32_t error;                      ///< MPI code: the rank could not make its part
};

/// How this rank holds the lock of a target.
enum class Hold : std::uint8_t {
  none,
  taking,     ///< a thread is waiting for it
  unchecked,  ///< MPI_MODE_NOCHECK: it is taken by no word
  shared,
  exclusive
};

/// Counts the operations on a target that were posted to the engine, so that a flush knows whether there is anything to
/// wait for. Any thread. A flush of one thread ends only what was posted before: counts, not a flag, keep the flush of
/// another thread from ending while the first one still waits.
class PendingOperations {
 public:
  /// Called after the post: a flush that has seen the count comes later in the lane.
  void note_posted() { posted_.fetch_add(1, std::memory_order_release); }  // pairs with posted()
  std::uint64_t posted() const { return posted_.load(std::memory_order_acquire); }
  /// A flush has ended that began when `posted` operations were counted.
  void note_over(std::uint64_t posted) {
    std::uint64_t over = over_.load(std::memory_order_relaxed);
    while (over < posted && !over_.compare_exchange_weak(over, posted, std::memory_order_release)) {
    }
  }
  std::uint64_t count() const { return posted() - over_.load(std::memory_order_acquire); }
  bool any() const { return over_.load(std::memory_order_acquire) < posted(); }  // pairs with note_over()

 private:
  std::atomic<std::uint64_t> posted_{0}, over_{0};
};

/// One rank of the window, as this rank sees it.
struct WindowTarget {
  WindowCard card{};
  std::atomic<bool> ready{false};  ///< operations are allowed, the keys are open, and the epoch knows of the target
  std::atomic<Hold> hold{Hold::none};
  bool is_member = false;          ///< of the group of MPI_Win_start
  canele_key_t* memory = nullptr;  ///< set under the window's mutex, like `control`
  canele_key_t* control = nullptr;
  char* address = nullptr;  ///< of its memory in this process; nullptr: it is not there
  WindowControl* mapped_control = nullptr;
  PendingOperations pending;
  RegionCache regions;          ///< of a dynamic window
  std::uint64_t posts = 0;      ///< its MPI_Win_post that no MPI_Win_start of this rank has used
  std::uint64_t completes = 0;  ///< its MPI_Win_complete that no MPI_Win_wait of this rank has used
};

/// What allows operations of this rank.
enum class Epoch : std::uint8_t { none, fence, start, lock, lock_all };

/// Data with gaps that operations refer to until they are over.
struct KeptData {
  KeptData(int of_rank, const Payload& data, Type& of_type) : rank(of_rank), payload(data), type(of_type) {
    add_reference(type);
  }
  ~KeptData() { drop_reference(type); }
  KeptData(const KeptData&) = delete;
  KeptData& operator=(const KeptData&) = delete;

  int rank;
  bool is_posted = false;  ///< all of the operations are posted: a flush ends them
  Payload payload;
  Type& type;
  std::vector<std::unique_ptr<PayloadSlice>> slices;  ///< parts, for operations on one block of the target
};

/// Notifications of one kind that come to this rank.
struct WindowNotices {
  canele_queue_t queue{};
  std::uint32_t slot = 0;
};

struct Window {
  Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Communicator* comm = nullptr;  ///< its own; holds a reference
  canele_engine_t* engine = nullptr;
  canele_lane_t* lane = nullptr;
  MPI_Win handle = MPI_WIN_NULL;

  // What MPI_Win_get_attr points to.
  void* base = nullptr;
  MPI_Aint size = 0;
  int unit = 1;
  int flavor = MPI_WIN_FLAVOR_CREATE;
  int model = MPI_WIN_UNIFIED;

  // Of a shared window.
  bool is_joint = false;         ///< all parts are in the memory of the first rank
  std::uint64_t first = 0;       ///< where this rank's part begins in it
  std::uint64_t whole_size = 0;  ///< bytes of all parts, or of the own part if they are apart
  void* whole_base = nullptr;    ///< address of the memory that this rank has allocated

  canele_memory_t* memory = nullptr;
  canele_memory_t* control = nullptr;
  WindowControl* own_control = nullptr;
  WindowNotices posts, completes;
  std::unique_ptr<WindowTarget[]> targets;

  std::mutex mutex;                       ///< guards what follows
  std::atomic<Epoch> epoch{Epoch::none};  ///< also read without the mutex
  int locks = 0;                          ///< targets that MPI_Win_lock has locked
  bool unchecked = false;                 ///< MPI_MODE_NOCHECK of MPI_Win_lock_all
  std::vector<int> used;                  ///< ranks with operations in this epoch
  std::vector<int> started;               ///< the group of MPI_Win_start
  std::vector<int> origins;               ///< the group of MPI_Win_post
  bool is_posted = false;                 ///< from MPI_Win_post to MPI_Win_wait
  std::vector<std::unique_ptr<KeptData>> kept;
  std::atomic<bool> has_kept{false};  ///< of `kept`; also read without the mutex
  InfoPairs hints;
  Attributes attributes;  ///< not guarded by the mutex
  // Of a dynamic window.
  std::vector<AttachedMemory> attached;
  std::vector<canele_key_t*> old_keys;  ///< of memory that its rank has detached

  int ranks() const { return comm->size(); }
};

using WindowPool = HandlePool<std::atomic<Window*>, MPI_Win, Kind::window, 1, 128>;
extern constinit WindowPool windows_pool;

/// Returns the communicator whose error handler is that of the window; nullptr for none.
inline const Communicator* comm_of(const Window* window) { return window == nullptr ? nullptr : window->comm; }

/// Finds the window of a live handle. Returns an MPI code.
int get_window(MPI_Win handle, Window** found);

/// What a rank gives to the creation of a window.
struct WindowRequest {
  int flavor;
  void* base;  ///< of MPI_WIN_FLAVOR_CREATE
  MPI_Aint size;
  MPI_Aint unit;  ///< at most INT_MAX
  MPI_Info info;
};

/// Implement MPI_Win_create, _allocate, _allocate_shared, _create_dynamic and _free. All ranks of the communicator call
/// them. They return MPI codes.
int create_window(Communicator& parent, const WindowRequest& request, Window** made);
int free_window(MPI_Win* handle);
/// Frees what is left of the windows, before the engine is finalized.
void close_windows();

/// Returns the options of operations on a window: its lane.
inline canele_access_options_t access_options(const Window& window) {
  canele_access_options_t options{};
  options.struct_size = sizeof options;
  options.lane = window.lane;
  return options;
}

/// Waits for an operation on a rank of the job. Returns an MPI code.
int await_access(canele_request_t& request, int rank);

/// Registers memory of the program. *skew gets how many bytes before `base` the memory of the key begins.
int register_memory(const Window& window, void* base, std::uint64_t size, std::uint64_t* skew,
                    canele_memory_t** memory);

/// Opens the keys of a target at first use. Returns an MPI code. Under the window's mutex.
int open_keys(const Window& window, WindowTarget& target);

/// Blocks until all ranks of the window have called it. Returns an MPI code.
int window_barrier(const Window& window);

/// Gives every rank what each of them has to say. All ranks of the window call it. Returns an MPI code.
template <class T>
int exchange(const Window& window, const T& mine, std::vector<T>* all) {
  all->resize(static_cast<std::size_t>(window.ranks()));
  const canele_parts_t parts{sizeof mine, nullptr, nullptr};
  return from_engine(canele_iallgather(window.comm->group(), &mine, all->data(), &parts, &blocking_options, nullptr));
}

/// Takes the hints that the library knows, and lists all of those with their values.
void take_hints(Window& window, const InfoPairs& hints);

}  // namespace canele::mpi
