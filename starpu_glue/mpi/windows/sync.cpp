// SPDX-License-Identifier: BSD-3-Clause
//
// Epochs, fences, flushes and locks of windows.
//
// The lock of a target is a word in its control memory. Origins change it by atomic operations, and try again after a
// rest if they cannot have it. The target takes no part. Reads and writes of the same host cost no packet.
//
//     word    bit 63: an origin holds it exclusively | bit 62: one waits for that | number of origins that share it
//
// While an origin waits for the exclusive lock, no further origin shares it, so it is not kept out for ever. Each
// origin that takes the exclusive lock clears bit 62, and those that still wait set it again.
//
// The release of a lock is posted to the lane of the window. It takes effect after the operations before it, and one
// flush waits for all of them.
//
// Rejected: a queue of origins in the target's memory. It is fair, but a rank that waits then needs a message, and an
// uncontended lock another round trip.
#include "starpu_glue/mpi/windows/sync.hpp"

#include <sched.h>

#include <algorithm>
#include <span>
#include <utility>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/windows/direct.hpp"

namespace canele::mpi {
namespace {

constexpr std::uint64_t kExclusive = std::uint64_t{1} << 63;
constexpr std::uint64_t kWaiting = std::uint64_t{1} << 62;

/// Waits before the next look at what another rank changes, and makes progress: first short, then asleep.
void rest(const Window& window, int attempt) {
  constexpr int kShortRests = 64;
  constexpr std::uint64_t kSleep_ns = 50'000;
  if (attempt < kShortRests) {
    if (canele_progress(window.engine) == 0) sched_yield();
    return;
  }
  canele_queue_t nothing{};
  canele_entry_t entry;
  canele_queue_wait(window.engine, &nothing, &entry, 1, canele_now(window.engine) + kSleep_ns);
}

/// Changes the lock word of a target. *before gets what it was.
int change(const Window& window, const WindowTarget& target, canele_atomic_operation operation, std::uint64_t operand,
           std::uint64_t compare, std::uint64_t* before) {
  if (target.mapped_control != nullptr) {
    *before = apply_directly(&target.mapped_control->lock, operation, sizeof *before, operand, compare);
    return MPI_SUCCESS;
  }
  const canele_access_options_t options = access_options(window);
  canele_request_t request{};
  const int error = canele_atomic(target.control, offsetof(WindowControl, lock), operation, sizeof *before, operand,
                                  compare, before, &options, &request);
  return error != CANELE_OK ? from_engine(error) : await_access(request, canele_key_rank(target.control));
}

int take_exclusive(const Window& window, const WindowTarget& target) {
  std::uint64_t free = 0, before = 0;
  for (int attempt = 0;; ++attempt) {
    int code = change(window, target, CANELE_ATOMIC_COMPARE_AND_SWAP, kExclusive, free, &before);
    if (code != MPI_SUCCESS || before == free) return code;
    if ((before & kWaiting) == 0) {
      code = change(window, target, CANELE_ATOMIC_OR, kWaiting, 0, &before);
      if (code != MPI_SUCCESS) return code;
    }
    free = kWaiting;
    if ((before & ~kWaiting) != 0) rest(window, attempt);
  }
}

int take_shared(const Window& window, const WindowTarget& target) {
  std::uint64_t before = 0;
  for (int attempt = 0;;) {
    int code = change(window, target, CANELE_ATOMIC_ADD, 1, 0, &before);
    if (code != MPI_SUCCESS || (before & (kExclusive | kWaiting)) == 0) return code;
    code = change(window, target, CANELE_ATOMIC_ADD, ~std::uint64_t{0}, 0, &before);
    while (code == MPI_SUCCESS && (before & (kExclusive | kWaiting)) != 0) {
      rest(window, attempt++);
      code = change(window, target, CANELE_ATOMIC_READ, 0, 0, &before);
    }
    if (code != MPI_SUCCESS) return code;
  }
}

/// Takes the lock for which `hold` stands.
int take(const Window& window, WindowTarget& target, Hold hold) {
  int code = MPI_SUCCESS;
  if (hold == Hold::exclusive) code = take_exclusive(window, target);
  if (hold == Hold::shared) code = take_shared(window, target);
  target.hold.store(code == MPI_SUCCESS ? hold : Hold::none, std::memory_order_release);  // pairs with take_late
  return code;
}

/// Releases a lock, behind the operations on the target: at once if none is pending, else the next flush waits for it.
int release(const Window& window, WindowTarget& target) {
  const Hold hold = target.hold.load(std::memory_order_relaxed);
  if (hold == Hold::unchecked) return MPI_SUCCESS;
  const bool is_shared = hold == Hold::shared;
  const canele_atomic_operation operation = is_shared ? CANELE_ATOMIC_ADD : CANELE_ATOMIC_AND;
  const std::uint64_t operand = is_shared ? ~std::uint64_t{0} : ~kExclusive;
  if (target.mapped_control != nullptr && !target.pending.any()) {
    apply_directly(&target.mapped_control->lock, operation, sizeof operand, operand, 0);
    return MPI_SUCCESS;
  }
  const canele_access_options_t options = access_options(window);
  const int error = canele_atomic(target.control, offsetof(WindowControl, lock), operation, sizeof operand, operand, 0,
                                  nullptr, &options, nullptr);
  target.pending.note_posted();
  return from_engine(error);
}

/// Takes the lock of a target that MPI_Win_lock_all has promised. If another thread is taking it, waits for that.
int take_late(const Window& window, WindowTarget& target) {
  Hold none = Hold::none;
  if (target.hold.compare_exchange_strong(none, Hold::taking, std::memory_order_acquire))
    return take(window, target, window.unchecked ? Hold::unchecked : Hold::shared);
  for (int attempt = 0; target.hold.load(std::memory_order_acquire) == Hold::taking; ++attempt) rest(window, attempt);
  return target.hold.load(std::memory_order_acquire) != Hold::none
             ? MPI_SUCCESS
             : fail(MPI_ERR_OTHER, "another thread could not lock the target");
}

bool allows(const Window& window, const WindowTarget& target) {
  switch (window.epoch.load()) {
    case Epoch::none:
      return false;
    case Epoch::start:
      return target.is_member;
    case Epoch::lock:
      return target.hold.load(std::memory_order_relaxed) > Hold::taking;
    default:
      return true;
  }
}

int check_rank(const Window& window, int rank) {
  if (window.comm->has_rank(rank)) return MPI_SUCCESS;
  return fail(MPI_ERR_RANK, "rank is %d; the window has the ranks 0 to %d", rank, window.ranks() - 1);
}

const char* name_of(Epoch epoch) {
  constexpr const char* names[] = {"no epoch", "a fence epoch with operations", "MPI_Win_start to MPI_Win_complete",
                                   "MPI_Win_lock to MPI_Win_unlock", "MPI_Win_lock_all to MPI_Win_unlock_all"};
  return names[static_cast<int>(epoch)];
}

/// Returns the data that posted operations on these targets refer to. It may be freed when they are over.
std::vector<std::unique_ptr<KeptData>> take_descriptions(Window& window, std::span<const int> ranks) {
  std::vector<std::unique_ptr<KeptData>> taken;
  if (!window.has_kept.load(std::memory_order_acquire)) return taken;  // pairs with keep()
  const std::lock_guard guard(window.mutex);
  for (std::unique_ptr<KeptData>& data : window.kept) {
    if (data->is_posted && std::find(ranks.begin(), ranks.end(), data->rank) != ranks.end())
      taken.push_back(std::move(data));
  }
  if (!taken.empty()) std::erase(window.kept, nullptr);
  if (window.kept.empty()) window.has_kept.store(false, std::memory_order_relaxed);
  return taken;
}

/// Flushes that are posted together.
class Flushes {
 public:
  explicit Flushes(const Window& window) : window_(window), options_(access_options(window)) {
    options_.done.kind = CANELE_COMPLETE_COUNTER;
    options_.done.object = &ended_;
  }
  ~Flushes() { wait(); }
  Flushes(const Flushes&) = delete;
  Flushes& operator=(const Flushes&) = delete;

  /// Posts the flush of a rank of the job.
  void post(int rank) {
    const int error = canele_flush(window_.engine, rank, &options_, nullptr);
    if (error == CANELE_OK) {
      ++posted_;
    } else {
      code_ = from_engine(error);
    }
  }
  /// Waits for all of them. Returns the first error.
  int wait() {
    const int error = canele_completion_counter_wait(window_.engine, &ended_, posted_, UINT64_MAX);
    if (error == CANELE_EDEADLK) fatal("a call that blocks was made inside a completion callback");
    return code_ != MPI_SUCCESS ? code_ : from_engine(error);
  }

 private:
  const Window& window_;
  canele_access_options_t options_;
  canele_completion_counter_t ended_{};
  std::uint64_t posted_ = 0;
  int code_ = MPI_SUCCESS;
};

/// Flushes one rank of the job.
int flush_rank(const Window& window, int rank) {
  const canele_access_options_t options = access_options(window);
  canele_request_t request{};
  const int error = canele_flush(window.engine, rank, &options, &request);
  return error != CANELE_OK ? from_engine(error) : await_access(request, rank);
}

/// Waits for what was posted to these targets.
int await_posted(Window& window, std::span<const int> ranks) {
  if (canele_lane_try_flush(window.lane) == 1) return MPI_SUCCESS;  // the posting threads have made all of it
  if (ranks.size() == 1 && !window.is_joint) return flush_rank(window, window.comm->world_rank(ranks.front()));
  Flushes flushes(window);
  for (const int rank : ranks) {
    const WindowTarget& target = window.targets[rank];
    if (!target.pending.any()) continue;
    flushes.post(window.comm->world_rank(rank));
    if (window.is_joint) flushes.post(canele_key_rank(target.memory));  // that rank serves the memory of all
  }
  return flushes.wait();
}

/// Waits for the operations on these targets.
int flush(Window& window, std::span<const int> ranks) {
  if (std::none_of(ranks.begin(), ranks.end(), [&](int rank) { return window.targets[rank].pending.any(); }))
    return MPI_SUCCESS;
  const auto over = take_descriptions(window, ranks);
  if (ranks.size() == 1) {
    PendingOperations& pending = window.targets[ranks.front()].pending;
    const std::uint64_t posted = pending.posted();
    const int code = await_posted(window, ranks);
    pending.note_over(posted);
    return code;
  }
  std::vector<std::uint64_t> posted;
  for (const int rank : ranks) posted.push_back(window.targets[rank].pending.posted());
  const int code = await_posted(window, ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) window.targets[ranks[i]].pending.note_over(posted[i]);
  return code;
}

int check_locked(const Window& window) {
  if (window.epoch == Epoch::lock || window.epoch == Epoch::lock_all) return MPI_SUCCESS;
  return fail(MPI_ERR_RMA_SYNC, "the window is not locked");
}

}  // namespace

constinit thread_local unsigned flushes_here = 0;

int check_asserts(int asserts, int allowed) {
  if ((asserts & ~allowed) == 0) return MPI_SUCCESS;
  return fail(MPI_ERR_ASSERT, "the assertion is 0x%x; expected: bits of 0x%x", static_cast<unsigned>(asserts),
              static_cast<unsigned>(allowed));
}

int check_new_epoch(const Window& window) {
  if (window.epoch == Epoch::none || (window.epoch == Epoch::fence && window.used.empty())) return MPI_SUCCESS;
  return fail(MPI_ERR_RMA_SYNC, "the window is in %s, which has to end first", name_of(window.epoch));
}

int make_ready(Window& window, int rank) {
  WindowTarget& target = window.targets[rank];
  bool is_late = false;
  {
    const std::lock_guard guard(window.mutex);
    if (!allows(window, target))
      return fail(MPI_ERR_RMA_SYNC, "an operation on rank %d outside of an epoch that allows it", rank);
    if (const int code = open_keys(window, target); code != MPI_SUCCESS) return code;
    is_late = window.epoch == Epoch::lock_all;
  }
  if (is_late) {
    if (const int code = take_late(window, target); code != MPI_SUCCESS) return code;
  }
  const std::lock_guard guard(window.mutex);
  if (target.ready.load(std::memory_order_relaxed)) return MPI_SUCCESS;
  window.used.push_back(rank);
  target.ready.store(true, std::memory_order_release);  // pairs with the acquire load in window_access.cpp
  return MPI_SUCCESS;
}

int limit_pending(Window& window, int rank) {
  if (window.targets[rank].pending.count() < kMostPending || CallbackScope::here()) return MPI_SUCCESS;
  return flush_window(window, rank);
}

int flush_window(Window& window, int rank) { return flush(window, {&rank, 1}); }

int flush_all_of_window(Window& window) {
  std::vector<int> ranks;
  {
    const std::lock_guard guard(window.mutex);
    ranks = window.used;
  }
  return flush(window, ranks);
}

int flush_locked(Window& window, int rank) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  int code = check_rank(window, rank);
  if (code == MPI_SUCCESS) code = check_locked(window);
  if (code != MPI_SUCCESS) return code;
  const WindowTarget& target = window.targets[rank];
  if (target.ready.load(std::memory_order_acquire)) {
    progress_at_times(window);
    return flush_window(window, rank);
  }
  const std::lock_guard guard(window.mutex);
  if (allows(window, target)) return MPI_SUCCESS;  // it was not used yet
  return fail(MPI_ERR_RMA_SYNC, "rank %d is not locked", rank);
}

int flush_all_locked(Window& window) {
  if (const int code = check_locked(window); code != MPI_SUCCESS) return code;
  progress_at_times(window);
  return flush_all_of_window(window);
}

int end_epoch(Window& window) {
  const int code = flush_all_of_window(window);
  const std::lock_guard guard(window.mutex);
  for (const int rank : window.used) window.targets[rank].ready.store(false, std::memory_order_relaxed);
  window.used.clear();
  window.epoch = Epoch::none;
  return code;
}

int check_unused(Window& window) {
  const std::lock_guard guard(window.mutex);
  if (window.is_posted) return fail(MPI_ERR_RMA_SYNC, "MPI_Win_post was called, but not yet MPI_Win_wait");
  if (window.epoch <= Epoch::fence) return MPI_SUCCESS;
  return fail(MPI_ERR_RMA_SYNC, "the window is in %s, which has to end first", name_of(window.epoch));
}

int fence_window(Window& window, int asserts) {
  constexpr int nothing_around = MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
  int code = check_asserts(asserts, nothing_around | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
  if (code == MPI_SUCCESS) code = check_unused(window);
  if (code != MPI_SUCCESS) return code;
  code = end_epoch(window);
  if ((asserts & nothing_around) != nothing_around) {
    const int met = window_barrier(window);
    if (code == MPI_SUCCESS) code = met;
  }
  const std::lock_guard guard(window.mutex);
  if ((asserts & MPI_MODE_NOSUCCEED) == 0) window.epoch = Epoch::fence;
  return code;
}

int lock_window(Window& window, int type, int rank, int asserts) {
  if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED)
    return fail(MPI_ERR_LOCKTYPE, "the lock is %d; expected: MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED", type);
  if (const int code = check_asserts(asserts, MPI_MODE_NOCHECK); code != MPI_SUCCESS) return code;
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (const int code = check_rank(window, rank); code != MPI_SUCCESS) return code;
  WindowTarget& target = window.targets[rank];
  {
    const std::lock_guard guard(window.mutex);
    int code = window.epoch == Epoch::lock ? MPI_SUCCESS : check_new_epoch(window);
    if (code == MPI_SUCCESS && target.hold.load(std::memory_order_relaxed) != Hold::none)
      code = fail(MPI_ERR_RMA_SYNC, "rank %d is locked already", rank);
    if (code == MPI_SUCCESS) code = open_keys(window, target);
    if (code != MPI_SUCCESS) return code;
    target.hold.store(Hold::taking, std::memory_order_relaxed);
    window.epoch = Epoch::lock;
    ++window.locks;
  }
  const Hold wanted = (asserts & MPI_MODE_NOCHECK) != 0 ? Hold::unchecked
                      : type == MPI_LOCK_SHARED         ? Hold::shared
                                                        : Hold::exclusive;
  const int code = take(window, target, wanted);
  if (code == MPI_SUCCESS) return code;
  const std::lock_guard guard(window.mutex);
  if (--window.locks == 0) window.epoch = Epoch::none;
  return code;
}

int unlock_window(Window& window, int rank) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (const int code = check_rank(window, rank); code != MPI_SUCCESS) return code;
  WindowTarget& target = window.targets[rank];
  {
    const std::lock_guard guard(window.mutex);
    if (window.epoch != Epoch::lock || target.hold.load(std::memory_order_relaxed) <= Hold::taking)
      return fail(MPI_ERR_RMA_SYNC, "rank %d is not locked by MPI_Win_lock", rank);
    target.ready.store(false, std::memory_order_relaxed);
    std::erase(window.used, rank);
  }
  const int released = release(window, target);
  const int code = flush_window(window, rank);
  const std::lock_guard guard(window.mutex);
  target.hold.store(Hold::none, std::memory_order_relaxed);
  if (--window.locks == 0) window.epoch = Epoch::none;
  return released != MPI_SUCCESS ? released : code;
}

int lock_all_of_window(Window& window, int asserts) {
  if (const int code = check_asserts(asserts, MPI_MODE_NOCHECK); code != MPI_SUCCESS) return code;
  {
    const std::lock_guard guard(window.mutex);
    if (const int code = check_new_epoch(window); code != MPI_SUCCESS) return code;
    window.epoch = Epoch::lock_all;
    window.unchecked = (asserts & MPI_MODE_NOCHECK) != 0;
  }
  const int own = window.comm->rank();
  const int code = make_ready(window, own);  // at once: the program may access its own part by loads and stores
  if (code != MPI_SUCCESS) end_epoch(window);
  return code;
}

int unlock_all_of_window(Window& window) {
  std::vector<int> ranks;
  {
    const std::lock_guard guard(window.mutex);
    if (window.epoch != Epoch::lock_all) return fail(MPI_ERR_RMA_SYNC, "MPI_Win_lock_all was not called");
    ranks = window.used;
  }
  int released = MPI_SUCCESS;
  for (const int rank : ranks) {
    const int code = release(window, window.targets[rank]);
    if (released == MPI_SUCCESS) released = code;
  }
  const int code = end_epoch(window);
  for (const int rank : ranks) window.targets[rank].hold.store(Hold::none, std::memory_order_relaxed);
  return released != MPI_SUCCESS ? released : code;
}

int sync_window(const Window& window) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  canele_progress(window.engine);
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
