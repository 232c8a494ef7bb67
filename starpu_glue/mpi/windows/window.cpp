// SPDX-License-Identifier: BSD-3-Clause
//
// Creation and end of windows.
//
// Memory of the program is registered from an address that is a multiple of 16 on, up to such an address. So offsets
// are aligned like addresses, and the smallest word of an atomic operation around any element is within the memory.
#include "starpu_glue/mpi/windows/window.hpp"

#include <sched.h>

#include <cstring>
#include <new>
#include <string_view>

#include "starpu_glue/mpi/communicators/creation.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/windows/dynamic.hpp"
#include "starpu_glue/mpi/windows/shared.hpp"
#include "starpu_glue/mpi/windows/sync.hpp"

namespace canele::mpi {

constinit WindowPool windows_pool;

namespace {

constexpr std::size_t kAlignment = 16;

constexpr std::size_t round_up(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

/// Returns how far from a page's beginning a window of `size` bytes begins. The C library's malloc begins large blocks
/// there, and copies cost least between addresses that are equal modulo the size of a cache line.
constexpr std::size_t lead_of(std::size_t size) {
  constexpr std::size_t large = 4096, of_malloc = 2 * sizeof(void*);
  return size >= large ? of_malloc : 0;
}

int allocate_window(Window& window, WindowCard& card) {
  const auto size = static_cast<std::size_t>(window.size);
  const std::size_t lead = lead_of(size);
  void* base = nullptr;
  const int code =
      from_engine(canele_memory_allocate(window.engine, round_up(size + lead), nullptr, &base, &window.memory));
  if (code != MPI_SUCCESS) return code;
  window.base = static_cast<char*>(base) + lead;
  card.first = lead;
  return MPI_SUCCESS;
}

int open_notices(const Window& window, WindowNotices& notices) {
  canele_completion_t then{};
  then.kind = CANELE_COMPLETE_QUEUE;
  then.object = &notices.queue;
  return from_engine(canele_notification_open(window.engine, &then, &notices.slot));
}

int open_memory(Window& window, WindowCard& card) {
  switch (window.flavor) {
    case MPI_WIN_FLAVOR_CREATE:
      if (window.size == 0) return MPI_SUCCESS;
      return register_memory(window, window.base, static_cast<std::uint64_t>(window.size), &card.first, &window.memory);
    case MPI_WIN_FLAVOR_DYNAMIC:
      return MPI_SUCCESS;
    case MPI_WIN_FLAVOR_SHARED:
      return allocate_shared_part(window, card);
    default:
      return allocate_window(window, card);
  }
}

/// Makes this rank's part of the window, and fills its card. Returns an MPI code.
int open_part(Window& window, WindowCard& card) {
  void* control = nullptr;
  int code = open_memory(window, card);
  const bool is_dynamic = window.flavor == MPI_WIN_FLAVOR_DYNAMIC;
  const std::size_t control_size = is_dynamic ? sizeof(WindowControl) : offsetof(WindowControl, regions);
  if (code == MPI_SUCCESS)
    code = from_engine(canele_memory_allocate(window.engine, control_size, nullptr, &control, &window.control));
  window.own_control = static_cast<WindowControl*>(control);
  if (code == MPI_SUCCESS) code = from_engine(canele_lane_open(window.engine, &window.lane));
  if (code == MPI_SUCCESS) code = open_notices(window, window.posts);
  if (code == MPI_SUCCESS) code = open_notices(window, window.completes);
  if (code != MPI_SUCCESS) return code;
  if (window.memory != nullptr) canele_memory_key(window.memory, card.memory);
  canele_memory_key(window.control, card.control);
  card.size = static_cast<std::uint64_t>(window.size);
  card.unit = window.unit;
  card.posts = window.posts.slot;
  card.completes = window.completes.slot;
  return MPI_SUCCESS;
}

/// Tells all ranks the card of this one. Returns an error on all ranks if one of them could not make its part.
int exchange_cards(Window& window, const WindowCard& mine) {
  std::vector<WindowCard> cards;
  if (const int code = exchange(window, mine, &cards); code != MPI_SUCCESS) return code;
  const std::size_t ranks = cards.size();
  window.targets.reset(new (std::nothrow) WindowTarget[ranks]);
  if (window.targets == nullptr) return fail(MPI_ERR_NO_MEM, "no memory for a list of %zu ranks", ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const int code = cards[rank].error;
    if (code != MPI_SUCCESS && mine.error != MPI_SUCCESS) return mine.error;  // its detail is this thread's
    if (code != MPI_SUCCESS) return fail(code, "rank %zu could not make its part of the window", rank);
    window.targets[rank].card = cards[rank];
  }
  return MPI_SUCCESS;
}

/// Repeats an end that is rejected while operations are pending.
template <class End>
void end_patiently(const Window& window, End end) {
  while (end() == CANELE_EBUSY) {
    if (canele_progress(window.engine) == 0) sched_yield();
  }
}

/// Frees the window. It has no handle, and no operation of it begins any more.
void destroy(Window* window) {
  for (int rank = 0; window->targets != nullptr && rank < window->ranks(); ++rank) {
    const WindowTarget& target = window->targets[rank];
    const bool has_own = !window->is_joint || rank == 0;
    for (canele_key_t* const key : {has_own ? target.memory : nullptr, target.control}) {
      if (key != nullptr) end_patiently(*window, [key] { return canele_key_close(key); });
    }
  }
  for (canele_key_t* const key : region_keys(*window)) end_patiently(*window, [key] { return canele_key_close(key); });
  if (window->lane != nullptr) end_patiently(*window, [window] { return canele_lane_close(window->lane); });
  for (WindowNotices* const notices : {&window->posts, &window->completes}) {
    if (notices->slot != 0) canele_notification_close(window->engine, notices->slot);
  }
  detach_all(*window);
  if (window->memory != nullptr) canele_memory_free(window->memory);
  if (window->control != nullptr) canele_memory_free(window->control);
  window->comm->drop_reference();
  delete window;
}

/// Makes the window of all ranks. Returns an error on all of them if one cannot make its part.
int build(Window& window, const InfoPairs& hints, bool has_slot) {
  const bool is_shared = window.flavor == MPI_WIN_FLAVOR_SHARED;
  int code = is_shared ? agree_on_places(window, hints) : MPI_SUCCESS;
  if (code != MPI_SUCCESS) return code;
  WindowCard mine{};
  mine.error =
      has_slot ? open_part(window, mine) : fail(MPI_ERR_NO_MEM, "no memory or no handle left for another window");
  code = exchange_cards(window, mine);
  return code == MPI_SUCCESS && is_shared ? map_parts(window) : code;
}

/// Returns the address of a key's memory in this process; nullptr if it cannot be mapped.
char* map_key(canele_key_t* key) {
  void* address = nullptr;
  return canele_key_map(key, &address) == CANELE_OK ? static_cast<char*>(address) : nullptr;
}

struct KnownHint {
  std::string_view key, value;  ///< with its value at the creation of a window
  bool is_of_shared = false;    ///< only shared windows have it
};

/// Hints that MPI defines. Only the last one changes what the library does: it keeps to the strictest meaning of each.
constexpr KnownHint kHints[] = {
    {"no_locks", "false"},
    {"accumulate_ordering", "rar,raw,war,waw"},
    {"accumulate_ops", "same_op_no_op"},
    {"same_size", "false"},
    {"same_disp_unit", "false"},
    {"alloc_shared_noncontig", "false", true},
};

}  // namespace

int get_window(MPI_Win handle, Window** found) {
  const std::atomic<Window*>* slot = windows_pool.find(handle);
  *found = slot == nullptr ? nullptr : slot->load(std::memory_order_acquire);
  if (*found != nullptr) return MPI_SUCCESS;
  if (handle == MPI_WIN_NULL) return fail(MPI_ERR_WIN, "the window is MPI_WIN_NULL");
  return fail(MPI_ERR_WIN, "0x%zx is not a window, or was freed", handle_bits(handle));
}

int create_window(Communicator& parent, const WindowRequest& request, Window** made) {
  InfoPairs hints;
  if (const int code = hint_pairs(request.info, &hints); code != MPI_SUCCESS) return code;
  auto* window = new (std::nothrow) Window;
  if (window == nullptr) return fail(MPI_ERR_NO_MEM, "no memory for another window");
  if (const int code = duplicate_unnamed(parent, &window->comm); code != MPI_SUCCESS) {
    delete window;
    return code;
  }
  window->engine = engine();
  window->base = request.base;
  window->size = request.size;
  window->unit = static_cast<int>(request.unit);
  window->flavor = request.flavor;
  take_hints(*window, hints);
  std::atomic<Window*>* const slot = windows_pool.take();
  if (const int code = build(*window, hints, slot != nullptr); code != MPI_SUCCESS) {
    if (slot != nullptr) windows_pool.give(*slot);
    destroy(window);
    return code;
  }
  slot->store(window, std::memory_order_release);  // pairs with the acquire load in get_window
  window->handle = WindowPool::open(*slot);
  window->comm->set_window(window->handle);
  *made = window;
  return MPI_SUCCESS;
}

int free_window(MPI_Win* handle) {
  Window* window = nullptr;
  if (const int code = get_window(*handle, &window); code != MPI_SUCCESS) return code;
  if (const int code = check_unused(*window); code != MPI_SUCCESS) return code;
  const int ended = end_epoch(*window);
  const int met = window_barrier(*window);  // from here on no rank accesses the part of another
  windows_pool.release(*handle);
  *handle = MPI_WIN_NULL;
  destroy(window);
  return ended != MPI_SUCCESS ? ended : met;
}

void close_windows() {
  windows_pool.each_live([](const std::atomic<Window*>& slot) {
    Window* const window = slot.load(std::memory_order_acquire);
    windows_pool.release(window->handle);
    destroy(window);
  });
}

int await_access(canele_request_t& request, int rank) {
  const int error = canele_wait(&request, nullptr);
  if (error == CANELE_EDEADLK) fatal("a call that blocks was made inside a completion callback");
  return from_status(error, rank);
}

int register_memory(const Window& window, void* base, std::uint64_t size, std::uint64_t* skew,
                    canele_memory_t** memory) {
  *skew = reinterpret_cast<std::uintptr_t>(base) % kAlignment;
  return from_engine(
      canele_memory_register(window.engine, static_cast<char*>(base) - *skew, round_up(size + *skew), nullptr, memory));
}

int open_keys(const Window& window, WindowTarget& target) {
  constexpr unsigned char no_key[CANELE_KEY_SIZE] = {};
  int error = CANELE_OK;
  if (target.memory == nullptr && std::memcmp(target.card.memory, no_key, sizeof no_key) != 0) {
    error = canele_key_open(window.engine, target.card.memory, &target.memory);
    if (error == CANELE_OK) target.address = map_key(target.memory);
  }
  if (error == CANELE_OK && target.control == nullptr) {
    error = canele_key_open(window.engine, target.card.control, &target.control);
    if (error == CANELE_OK) target.mapped_control = reinterpret_cast<WindowControl*>(map_key(target.control));
  }
  return from_engine(error);
}

int window_barrier(const Window& window) {
  return from_engine(canele_ibarrier(window.comm->group(), &blocking_options, nullptr));
}

void take_hints(Window& window, const InfoPairs& hints) {
  const std::lock_guard guard(window.mutex);
  const bool is_first = window.hints.empty();
  for (const KnownHint& known : kHints) {
    if (known.is_of_shared && window.flavor != MPI_WIN_FLAVOR_SHARED) continue;
    if (is_first) set_value(window.hints, known.key, known.value);
    if (const std::string* given = find_value(hints, known.key)) set_value(window.hints, known.key, *given);
  }
}

}  // namespace canele::mpi
