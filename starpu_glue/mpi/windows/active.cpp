// SPDX-License-Identifier: BSD-3-Clause
//
// Post, start, complete and wait.
//
// A complete is told only after a flush: an answer to a get reads the target's memory until the get is over.
#include "starpu_glue/mpi/windows/active.hpp"

#include <canele/job.h>

#include <span>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/windows/sync.hpp"

namespace canele::mpi {
namespace {

/// Finds the ranks of a group in the window.
int find_members(const Window& window, const Ranks& group, std::vector<int>* members) {
  for (int i = 0; i < group.size(); ++i) {
    const int rank = window.comm->ranks()->position(group.world_rank(i));
    if (rank == MPI_UNDEFINED)
      return fail(MPI_ERR_GROUP, "the group holds rank %d of MPI_COMM_WORLD, which the window does not have",
                  group.world_rank(i));
    members->push_back(rank);
  }
  return MPI_SUCCESS;
}

/// Sends a notification to a slot of each rank.
int notify(const Window& window, std::span<const int> ranks, std::uint32_t WindowCard::*slot) {
  int code = MPI_SUCCESS;
  for (const int rank : ranks) {
    canele_access_options_t options = access_options(window);
    options.slot = window.targets[rank].card.*slot;
    const int error = canele_notify(window.engine, window.comm->world_rank(rank), &options, nullptr);
    if (error != CANELE_OK) code = from_engine(error);
  }
  return code;
}

/// Counts notifications for the ranks that have sent them.
void count(const Window& window, std::span<const canele_entry_t> entries, std::uint64_t WindowTarget::*counter) {
  for (const canele_entry_t& entry : entries) {
    const int rank = window.comm->ranks()->position(entry.source);
    if (rank != MPI_UNDEFINED) ++(window.targets[rank].*counter);
  }
}

/// Takes one notification of each rank, if all of them are there. Else returns false.
bool take_one_of_each(const Window& window, std::span<const int> ranks, std::uint64_t WindowTarget::*counter) {
  for (const int rank : ranks) {
    if (window.targets[rank].*counter == 0) return false;
  }
  for (const int rank : ranks) --(window.targets[rank].*counter);
  return true;
}

/// Returns an error if one of the ranks has ended: its notification will never come.
int check_alive(const Window& window, std::span<const int> ranks) {
  for (const int rank : ranks) {
    const int peer = window.comm->world_rank(rank);
    if (canele_peer_state(window.engine, peer) >= CANELE_PEER_LEFT) return from_status(CANELE_EPEER, peer);
  }
  return MPI_SUCCESS;
}

constexpr int kEntries = 16;

/// Waits until each of the ranks has sent a notification, and takes it.
int await_notices(Window& window, WindowNotices& notices, std::span<const int> ranks,
                  std::uint64_t WindowTarget::*counter) {
  constexpr std::uint64_t kLook_ns = 1'000'000'000;  // then whether the ranks live
  canele_entry_t entries[kEntries];
  while (!take_one_of_each(window, ranks, counter)) {
    const int found =
        canele_queue_wait(window.engine, &notices.queue, entries, kEntries, canele_now(window.engine) + kLook_ns);
    if (found > 0) {
      count(window, {entries, static_cast<std::size_t>(found)}, counter);
      continue;
    }
    const int code = found == CANELE_ETIMEOUT ? check_alive(window, ranks) : from_engine(found);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

/// Returns the group of MPI_Win_post.
int posted_origins(Window& window, std::vector<int>* origins) {
  const std::lock_guard guard(window.mutex);
  if (!window.is_posted) return fail(MPI_ERR_RMA_SYNC, "MPI_Win_post was not called");
  *origins = window.origins;
  return MPI_SUCCESS;
}

void end_post(Window& window) {
  const std::lock_guard guard(window.mutex);
  window.is_posted = false;
  window.origins.clear();
}

}  // namespace

int post_window(Window& window, const Ranks& origins, int asserts) {
  std::vector<int> members;
  int code = check_asserts(asserts, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
  if (code == MPI_SUCCESS) code = find_members(window, origins, &members);
  if (code != MPI_SUCCESS) return code;
  {
    const std::lock_guard guard(window.mutex);
    if (window.is_posted) return fail(MPI_ERR_RMA_SYNC, "MPI_Win_post was called before, and not yet MPI_Win_wait");
    if (window.epoch != Epoch::start) code = check_new_epoch(window);
    if (code != MPI_SUCCESS) return code;
    window.is_posted = true;
    window.origins = members;
  }
  return (asserts & MPI_MODE_NOCHECK) != 0 ? MPI_SUCCESS : notify(window, members, &WindowCard::posts);
}

int start_window(Window& window, const Ranks& targets, int asserts) {
  std::vector<int> members;
  int code = check_asserts(asserts, MPI_MODE_NOCHECK);
  if (code == MPI_SUCCESS) code = find_members(window, targets, &members);
  if (code != MPI_SUCCESS) return code;
  {
    const std::lock_guard guard(window.mutex);
    if (code = check_new_epoch(window); code != MPI_SUCCESS) return code;
    window.epoch = Epoch::start;
  }
  if ((asserts & MPI_MODE_NOCHECK) == 0) code = await_notices(window, window.posts, members, &WindowTarget::posts);
  const std::lock_guard guard(window.mutex);
  if (code != MPI_SUCCESS) {
    window.epoch = Epoch::none;
    return code;
  }
  for (const int rank : members) window.targets[rank].is_member = true;
  window.started = std::move(members);
  return MPI_SUCCESS;
}

int complete_window(Window& window) {
  std::vector<int> members;
  {
    const std::lock_guard guard(window.mutex);
    if (window.epoch != Epoch::start) return fail(MPI_ERR_RMA_SYNC, "MPI_Win_start was not called");
    members = std::move(window.started);
    window.started.clear();
    for (const int rank : members) window.targets[rank].is_member = false;
  }
  const int code = end_epoch(window);
  const int notified = notify(window, members, &WindowCard::completes);
  return code != MPI_SUCCESS ? code : notified;
}

int wait_window(Window& window) {
  std::vector<int> origins;
  int code = posted_origins(window, &origins);
  if (code == MPI_SUCCESS) code = await_notices(window, window.completes, origins, &WindowTarget::completes);
  if (code == MPI_SUCCESS) end_post(window);
  return code;
}

int test_window(Window& window, int* flag) {
  std::vector<int> origins;
  if (const int code = posted_origins(window, &origins); code != MPI_SUCCESS) return code;
  canele_entry_t entries[kEntries];
  const int found = canele_queue_take(window.engine, &window.completes.queue, entries, kEntries);
  if (found < 0) return from_engine(found);
  count(window, {entries, static_cast<std::size_t>(found)}, &WindowTarget::completes);
  const bool is_over = take_one_of_each(window, origins, &WindowTarget::completes);
  if (is_over) end_post(window);
  *flag = is_over ? 1 : 0;
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
