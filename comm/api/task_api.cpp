// SPDX-License-Identifier: BSD-3-Clause
//
// Tasks of the C ABI: small pieces of the program's own work, run by threads that make progress.
//
// Any thread. The function of a task runs like the callback of a request. The memory of a task belongs to the program
// again when its function has returned CANELE_TASK_GONE; or CANELE_TASK_DONE, and the task is marked idle. The count of
// tasks in use belongs to the engine, and is decremented last.
#include <string>

#include "comm/api/api.hpp"
#include "ltask/topology.hpp"
#include "ltask/topology_task_queues.hpp"

namespace canele::comm::api {
namespace {

constexpr int anywhere = -1;

/// What the library keeps in a canele_task_t. Zero bytes are an idle task.
struct UserTask : ltask::Task {
  int place;  ///< index in TopologyTaskQueues, or anywhere
  Engine* engine;
  canele_task_fn user_function;
  void* argument;
};
static_assert(sizeof(UserTask) <= sizeof(canele_task_t) && alignof(UserTask) <= alignof(canele_task_t));

UserTask& task_of(canele_task_t* task) { return *reinterpret_cast<UserTask*>(task); }
canele_task_t* public_of(UserTask& task) { return reinterpret_cast<canele_task_t*>(&task); }

ltask::TaskQueue& queue_of(const UserTask& task) {
  Engine& engine = *task.engine;
  return task.place == anywhere ? engine.tasks
                                : engine.progress.topology_queues.load(std::memory_order_acquire)->queue(task.place);
}

/// Wakes a thread for what has been queued.
void call_for_it(Engine& engine) {
  engine.sleeper.wake();
  engine.wake_on_demand_thread();
}

void call_function(ltask::Task& base) {
  auto& task = static_cast<UserTask&>(base);
  Engine& engine = *task.engine;
  const bool cancelled = task.is_cancelled();
  engine.counters.add_shared(Counter::callbacks);
  ++callbacks_on_this_thread;
  const int outcome = task.user_function(public_of(task), cancelled ? 1 : 0, task.argument);
  --callbacks_on_this_thread;
  if (outcome == CANELE_TASK_AGAIN && !cancelled) {
    const bool for_any = task.place == anywhere;
    task.again();
    queue_of(task).submit(task);
    if (for_any) call_for_it(engine);  // this thread may leave the library
    return;
  }
  if (outcome != CANELE_TASK_GONE) task.finish();
  engine.progress.tasks_in_use.fetch_sub(
      1, std::memory_order_release);  // pairs with the acquire load in canele_finalize()
}

/// Returns the engine's places. The first thread that needs them makes them.
ltask::TopologyTaskQueues& topology_queues_of(Engine& engine) {
  if (ltask::TopologyTaskQueues* const there = engine.progress.topology_queues.load(std::memory_order_acquire))
    return *there;
  auto made = std::make_unique<ltask::TopologyTaskQueues>(ltask::Topology());
  ltask::TopologyTaskQueues* before = nullptr;
  if (engine.progress.topology_queues.compare_exchange_strong(before, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *before;
}

/// Writes the number of a place to *place. Returns CANELE_OK or an error.
int find_place(Engine& engine, canele_place kind, int index, int* place) {
  *place = anywhere;
  if (kind == CANELE_PLACE_ANY) return CANELE_OK;
  struct Kind {
    canele_place number;
    ltask::Topology::Kind kind;
    const char* name;
  };
  using Object = ltask::Topology::Kind;
  constexpr Kind kinds[] = {{CANELE_PLACE_PACKAGE, Object::package, "package"},
                            {CANELE_PLACE_NUMA_NODE, Object::numa_node, "NUMA node"},
                            {CANELE_PLACE_CORE, Object::core, "core"},
                            {CANELE_PLACE_UNIT, Object::unit, "PU"}};
  for (const Kind& one : kinds) {
    if (one.number != kind) continue;
    const std::optional<int> found = topology_queues_of(engine).find(one.kind, index);
    if (found) *place = *found;
    if (found) return CANELE_OK;
    return error(CANELE_EINVAL, "canele_task_submit: there is no " + std::string(one.name) + " with logical index " +
                                    std::to_string(index) + " in this machine: " + ltask::Topology().describe());
  }
  return error(CANELE_EINVAL,
               "canele_task_submit: kind is " + std::to_string(kind) + "; expected: a value of enum canele_place");
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele;
using namespace canele::comm;
using namespace canele::comm::api;

int canele_task_submit(canele_engine_t* engine, canele_task_t* task, canele_task_fn function, void* argument,
                       canele_place kind, int index) try {
  if (engine == nullptr || task == nullptr || function == nullptr) {
    return error(CANELE_EINVAL, "canele_task_submit: engine, task and function must be given");
  }
  if (fork::in_child) return reject_in_child("canele_task_submit");
  Engine& e = engine_of(engine);
  int place = anywhere;
  if (const int code = find_place(e, kind, index, &place); code != CANELE_OK) return code;
  UserTask& t = task_of(task);
  t.make_steerable();
  if (!t.claim()) return error(CANELE_EBUSY, "canele_task_submit: the task is in use");
  t.function = call_function;
  t.place = place;
  t.engine = &e;
  t.user_function = function;
  t.argument = argument;
  e.progress.tasks_in_use.fetch_add(1, std::memory_order_relaxed);
  queue_of(t).submit(t);
  call_for_it(e);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_task_cancel(canele_task_t* task) try {
  if (task == nullptr) return error(CANELE_EINVAL, "canele_task_cancel: task is NULL");
  if (fork::in_child) return reject_in_child("canele_task_cancel");
  UserTask& t = task_of(task);
  Engine* const engine = t.engine;
  if (t.state() == ltask::Task::idle || !queue_of(t).cancel(t)) {
    return error(CANELE_ESTATE, "canele_task_cancel: the task is not in use");
  }
  call_for_it(*engine);
  return CANELE_OK;
} catch (...) {
  return caught();
}

void canele_task_mask(canele_task_t* task) {
  if (task != nullptr && !fork::in_child) task_of(task).mask();
}

void canele_task_unmask(canele_task_t* task) {
  if (task == nullptr || fork::in_child) return;
  UserTask& t = task_of(task);
  if (!t.unmask()) return;
  Engine& engine = *t.engine;
  queue_of(t).submit(t);
  call_for_it(engine);
}

int canele_task_in_use(const canele_task_t* task) try {
  if (task == nullptr) return error(CANELE_EINVAL, "canele_task_in_use: task is NULL");
  if (fork::in_child) return reject_in_child("canele_task_in_use");
  return task_of(const_cast<canele_task_t*>(task)).state() != ltask::Task::idle ? 1 : 0;
} catch (...) {
  return caught();
}
