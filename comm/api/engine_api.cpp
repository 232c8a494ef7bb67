// SPDX-License-Identifier: BSD-3-Clause
//
// Engines and sessions of the C ABI: init, finalize, abort, progress, sessions, barrier.
//
// One thread calls finalize; any thread calls the rest. Finalize is a barrier of the engine's own: every rank makes
// progress for the others until all have the messages sent to them.
#include <unistd.h>

#include <algorithm>

#include "comm/api/api.hpp"
#include "comm/api/device_use.hpp"
#include "comm/api/exchange.hpp"
#include "comm/api/start_checks.hpp"
#include "comm/api/worker_place.hpp"
#include "comm/collectives/discard_receiver.hpp"
#include "comm/collectives/group.hpp"
#include "comm/diagnose/hang_collect.hpp"
#include "comm/engine/connect.hpp"
#include "comm/engine/rejection.hpp"
#include "comm/link/sequencing.hpp"
#include "comm/observe/report.hpp"
#include "comm/protocol/receive.hpp"
#include "comm/protocol/send.hpp"
#include "comm/registry/modules.hpp"
#include "comm/registry/registry.hpp"
#include "comm/rendezvous/receiver_initiated.hpp"

namespace canele::comm::api {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

void find_devices(Engine& engine);

int make_engine(const canele_options_t* options, std::unique_ptr<Engine>* engine) {
  std::vector<std::string> overrides;
  std::string why = read_options(options, &overrides);
  if (!why.empty()) return error(CANELE_EINVAL, why);
  EngineParts parts;
  parts.platform = &posix_platform();
  parts.settings = std::make_unique<Settings>(*parts.platform, overrides, Settings::Warnings::later);
  why = parts.settings->error().empty() ? wrong_setting(*parts.settings) : parts.settings->error();
  if (!why.empty()) return error(CANELE_EINVAL, why);
  const std::string& path = parts.settings->text(Setting::driver_path);
  if (!choose_drivers(parts.settings->text(Setting::drivers), path, &parts.drivers, &why))
    return error(CANELE_EINVAL, why);
  parts.strategy = find_strategy(parts.settings->text(Setting::strategy));
  parts.bootstrap = join_job(*parts.platform, parts.settings->number(Setting::start_timeout) * second_ns, &why);
  if (parts.bootstrap == nullptr) return error(CANELE_EBOOTSTRAP, why);
  parts.on_this_machine = true;
  parts.check_hang = hang::check;
  parts.cores = register_cores(*parts.settings);
  int code = CANELE_OK;
  *engine = Engine::create(std::move(parts), &why, &code);
  if (*engine == nullptr) return error(code, why);
  warn_of_settings(**engine);
  find_devices(**engine);
  return CANELE_OK;
}

/// Looks for devices. Without one a program is told only if it has asked for them.
void find_devices(Engine& engine) {
  std::string why;
  if (!device::find(engine, &why) && engine.lifecycle.settings->text(Setting::gpu) == "cuda")
    engine.log(LogLevel::warning, "CANELE_GPU=cuda: " + why);
}

/// Pins the calling thread to its rank's share of the units, if the ranks fill the host. On a host with more units the
/// operating system places the thread. If the program's threads compute all the time, the system also places them
/// better.
void pin_to_share(Engine& engine) {
  const int ranks = engine.lifecycle.bootstrap->local_size();
  if (ranks < 2 || static_cast<unsigned>(ranks) < engine.platform.processors() || engine.placement.no_core_for_worker)
    return;
  if (engine.lifecycle.settings->text(Setting::rank_affinity) != "auto") return;
  engine.progress.waiters.contention.pin_to_share(engine.platform,
                                                  static_cast<unsigned>(engine.lifecycle.bootstrap->local_rank()));
  if (engine.oversubscribed && ranks == engine.size)
    engine.progress.core_siblings.find(engine.platform, engine.rank, ranks);
}

bool all_fetched(Engine& engine) CANELE_UNDER_LOCK { return engine.large.active_copies == 0; }

bool devices_idle(Engine& engine) { return !device::present(engine) || device::of(engine).idle(); }

bool all_sent(Engine& engine) CANELE_UNDER_LOCK { return engine.pending_sends == 0 && all_fetched(engine); }

bool all_quiet(Engine& engine) CANELE_UNDER_LOCK {
  return engine.lifecycle.resolving == 0 &&
         std::all_of(engine.active_peers.begin(), engine.active_peers.end(), [](const std::unique_ptr<Peer>& peer) {
           if (peer->disconnected() || peer->state != Peer::State::up) return true;
           return peer->quiet() && sequencing::rails_closed(*peer);
         });
}

void send_goodbye(Engine& engine) CANELE_UNDER_LOCK {
  engine.stage = Stage::leaving;
  for (const auto& peer : engine.active_peers) {
    if (peer->state == Peer::State::up && peer->rank != engine.rank) {
      peers::send_goodbye(engine, *peer);
    }
  }
}

/// Messages without a receive while the engine disconnects. The program's threads post no more receives. What still
/// waits for a receive after a second is dropped, so that no sender, and no rank, need wait for it. (Callbacks may
/// still post: hence the second.)
class UnreceivedMessages {
 public:
  explicit UnreceivedMessages(Engine& engine) : engine_(engine) { note(); }
  /// Returns when a wait ends: at the deadline (0: none), or at the next check().
  std::uint64_t until(std::uint64_t deadline) const { return deadline == 0 ? next_ns_ : std::min(deadline, next_ns_); }
  bool past(std::uint64_t deadline) const { return deadline != 0 && engine_.platform.now_ns() >= deadline; }
  void check() {
    if (engine_.platform.now_ns() < next_ns_) return;
    engine_.lock_for_callback();
    rejection::drop_leftovers(engine_, post_order_);
    engine_.unlock();
    engine_.after_submit();
    note();
  }

 private:
  void note() {
    engine_.lock_for_callback();
    post_order_ = engine_.matcher.take_post_order();
    engine_.unlock();
    next_ns_ = engine_.platform.now_ns() + second_ns;
  }
  Engine& engine_;
  std::uint64_t post_order_ = 0, next_ns_ = 0;
};

bool wait_for_sends(Engine& engine, std::uint64_t deadline, UnreceivedMessages& unreceived) {
  while (!progress_until(engine, unreceived.until(deadline), all_sent)) {
    if (unreceived.past(deadline)) return false;
    unreceived.check();
  }
  return true;
}

/// Blocks like wait_for_one(). unreceived: nullptr if the engine does not disconnect.
int wait_in_barrier(Engine& engine, Target& target, std::uint64_t deadline, BlockedThread::In in,
                    UnreceivedMessages* unreceived) {
  if (unreceived == nullptr) return wait_for_one(&engine, &target, 1, deadline, in);
  for (;;) {
    const int code = wait_for_one(&engine, &target, 1, unreceived->until(deadline), in);
    if (code != CANELE_ETIMEOUT || unreceived->past(deadline)) return code;
    unreceived->check();
  }
}

int barrier_rounds(Session& session, std::uint64_t deadline_ns, BlockedThread::In in, UnreceivedMessages* unreceived);

/// Executes the steps of disconnecting from the job. Returns the first error.
int disconnect(Engine& engine) {
  const std::uint64_t timeout_s = engine.lifecycle.settings->number(Setting::finalize_timeout);
  const std::uint64_t deadline = timeout_s == 0 ? 0 : engine.platform.now_ns() + timeout_s * second_ns;
  int result = CANELE_OK;
  engine.lock_for_callback();
  engine.stage = Stage::finalizing;
  engine.unlock();
  UnreceivedMessages unreceived(engine);
  if (!wait_for_sends(engine, deadline, unreceived)) {
    result = error(CANELE_ETIMEOUT, "canele_finalize: sends were still pending after CANELE_FINALIZE_TIMEOUT = " +
                                        std::to_string(timeout_s) + " s: their receives were never posted");
  }
  int code = CANELE_OK;
  Session* session = open_session(engine, "canele.finalize", CANELE_ORDER_PER_TAG, &code);
  if (session != nullptr) code = barrier_rounds(*session, deadline, BlockedThread::In::finalize, &unreceived);
  if (result == CANELE_OK && code == CANELE_ETIMEOUT) {
    result = error(code, "canele_finalize: " + std::string(canele_error_detail()));
  }
  collectives::Group::notify_before_disconnect(engine);
  engine.lock_for_callback();
  receive_path::end_posted(engine, rank_any, CANELE_ECANCELED);
  engine.unlock();
  // What is on its way to a device uses memory of the program.
  progress_until(engine, engine.platform.now_ns() + 10 * second_ns, devices_idle);
  // A peer that learns that this rank leaves reuses the memory that this rank still copies from.
  progress_until(engine, engine.platform.now_ns() + 10 * second_ns, all_fetched);
  engine.lock_for_callback();
  send_goodbye(engine);
  engine.unlock();
  progress_until(engine, engine.platform.now_ns() + 10 * second_ns, all_quiet);
  engine.progress.on_demand.stop();
  engine.progress.worker.stop();
  if (device::present(engine)) device::of(engine).stop();
  while (engine.tasks.run(64) > 0) {
  }
  return result;
}

void dump_counters(Engine& engine) {
  const std::string& pattern = engine.lifecycle.settings->text(Setting::counters);
  if (pattern.empty()) return;
  const std::string problem =
      write_json(file_of_rank(pattern, engine.rank), counters_json(engine), "the counters (CANELE_COUNTERS)");
  if (!problem.empty()) engine.log(LogLevel::error, problem);
}

/// Writes the trace. The engine has stopped, so the log may be read without the lock.
void dump_trace(Engine& engine) {
  if (engine.event_log == nullptr) return;
  assume_lock();  // no other thread uses the engine any more
  const std::string file = file_of_rank(engine.lifecycle.settings->text(Setting::trace), engine.rank);
  const std::string problem = write_json(file, engine.event_log->to_json(engine.rank), "the trace (CANELE_TRACE)");
  if (!problem.empty()) engine.log(LogLevel::error, problem);
}

}  // namespace

Session* open_session(Engine& engine, std::string_view label, unsigned flags, int* code) {
  *code = check_memory("canele_session_open");
  if (*code != CANELE_OK) return nullptr;
  engine.lock_for_callback();
  Session* session = &engine.sessions.find_or_make(engine, label);
  if (session->open) {
    *code = error(CANELE_EBUSY, "session \"" + std::string(label) + "\" is already open in this process");
    session = nullptr;
  } else if (!engine.sessions.open(*session)) {
    *code = error(CANELE_ENOMEM, "no more than " + std::to_string(SessionTable::most_open) +
                                     " sessions can be open at a time; close some first");
    engine.sessions.release_if_unused(*session);
    session = nullptr;
  } else {
    session->order_across_tags = (flags & CANELE_ORDER_ACROSS_TAGS) != 0;
    *code = CANELE_OK;
  }
  engine.unlock();
  return session;
}

namespace {

/// Exchanges one message each way. *posted: false if not even the posts succeeded.
int barrier_round(Session& session, int distance, std::uint64_t deadline_ns, BlockedThread::In in,
                  UnreceivedMessages* unreceived, bool* posted) {
  Engine& engine = engine_of(*session.context);
  const int to = (engine.rank + distance) % engine.size, from = (engine.rank - distance + engine.size) % engine.size;
  canele_request_t send{}, receive{};
  int code = canele_irecv(public_of(session), from, static_cast<std::uint64_t>(distance), CANELE_TAG_EXACT, nullptr, 0,
                          &receive);
  if (code == CANELE_OK) {
    code = canele_isend(public_of(session), to, static_cast<std::uint64_t>(distance), nullptr, 0, &send);
  }
  *posted = code == CANELE_OK;
  if (code != CANELE_OK) return code;
  Target arrived = end_of(request_of(&receive)), sent = end_of(request_of(&send));
  code = wait_in_barrier(engine, arrived, deadline_ns, in, unreceived);
  if (code == CANELE_ETIMEOUT) {
    error(code, "rank " + std::to_string(from) + " has not arrived");
    canele_cancel(&receive);
  }
  wait_in_barrier(engine, arrived, 0, in, unreceived);
  wait_in_barrier(engine, sent, 0, in, unreceived);
  if (code != CANELE_OK) return code;
  const int ended = request_of(&receive).status_error;
  return ended == CANELE_OK ? CANELE_OK : error(ended, "barrier: rank " + std::to_string(from) + " died or left");
}

int barrier_rounds(Session& session, std::uint64_t deadline_ns, BlockedThread::In in, UnreceivedMessages* unreceived) {
  if (callback_depth() != 0)
    return error(CANELE_EDEADLK, "a barrier inside a completion callback would wait for itself");
  int result = CANELE_OK;
  std::string words;
  // Continues after the loss of a rank: ranks that have not lost it wait for our part in the later rounds.
  for (int distance = 1; distance < session.context->size; distance *= 2) {
    bool posted = false;
    const int code = barrier_round(session, distance, deadline_ns, in, unreceived, &posted);
    if (!posted) return code;
    if (code == CANELE_OK || result != CANELE_OK) continue;
    result = code;
    words = canele_error_detail();
  }
  return result == CANELE_OK ? result : error(result, std::move(words));
}

}  // namespace

int barrier(Session& session, std::uint64_t deadline_ns, BlockedThread::In in) {
  return barrier_rounds(session, deadline_ns, in, nullptr);
}

}  // namespace canele::comm::api

using namespace canele;
using namespace canele::comm;
using namespace canele::comm::api;

int canele_init(const canele_options_t* options, canele_engine_t** engine) try {
  if (engine == nullptr) return error(CANELE_EINVAL, "canele_init: engine is NULL");
  if (callback_depth() != 0) return error(CANELE_EDEADLK, "canele_init inside a completion callback");
  if (fork::in_child) return reject_in_child("canele_init");
  if (!canele::ltask::memory_reserve.refill()) return error(CANELE_ENOMEM, "canele_init: no memory for the reserve");
  if (!fork::begin_life()) return error(CANELE_ENOMEM, "canele_init: too many engines at a time, or no memory");
  std::unique_ptr<Engine> made;
  int code = make_engine(options, &made);
  if (code == CANELE_OK) {
    fork::enlist(*made, made->lifecycle.bootstrap->name() != "singleton");
    code = start_workers(*made);
  }
  if (code != CANELE_OK) {
    fork::end_life(made.get());
    return code;
  }
  pin_to_share(*made);
  made->log(LogLevel::info, "canele " CANELE_VERSION ", " + std::to_string(made->size) + " ranks by " +
                                std::string(made->lifecycle.bootstrap->name()) + ", strategy " +
                                std::string(made->lifecycle.strategy.name) + ", worker " + describe_workers(*made));
  *engine = public_of(*made.release());
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_finalize(canele_engine_t* engine) try {
  if (engine == nullptr) return CANELE_OK;
  if (callback_depth() != 0) return error(CANELE_EDEADLK, "canele_finalize inside a completion callback");
  Engine& e = engine_of(engine);
  if (fork::in_child) return reject_in_child("canele_finalize");
  if (const std::uint64_t tasks = e.progress.tasks_in_use.load(std::memory_order_acquire); tasks != 0) {
    return error(CANELE_EBUSY, "canele_finalize: " + std::to_string(tasks) +
                                   " tasks of the program have not ended: cancel them, and make progress");
  }
  leave_exchange(e);
  collectives::ShutdownDiscards discards(e);  // until the engine is destroyed
  const int code = disconnect(e);
  dump_counters(e);
  dump_trace(e);
  fork::end_life(&e);
  delete &e;
  return code;
} catch (...) {
  return caught();
}

void canele_abort(canele_engine_t* engine, int code, const char* reason) {
  if (engine != nullptr && !fork::in_child) {  // the launcher would take the child for its parent
    Engine& e = engine_of(engine);
    e.log(LogLevel::error, std::string("abort: ") + (reason != nullptr ? reason : "no reason given"));
    e.lifecycle.bootstrap->abort(code, reason != nullptr ? reason : "");
  }
  _exit(code);
}

namespace {

[[gnu::cold]] int no_engine(const char* call) { return error(CANELE_EINVAL, call, "engine is NULL"); }

}  // namespace

int canele_rank(const canele_engine_t* engine) try {
  return engine != nullptr ? engine_of(engine).rank : no_engine("canele_rank");
} catch (...) {
  return caught();
}

int canele_size(const canele_engine_t* engine) try {
  return engine != nullptr ? engine_of(engine).size : no_engine("canele_size");
} catch (...) {
  return caught();
}

int canele_local_rank(const canele_engine_t* engine) try {
  if (engine == nullptr) return no_engine("canele_local_rank");
  return fork::in_child ? reject_in_child("canele_local_rank") : engine_of(engine).lifecycle.bootstrap->local_rank();
} catch (...) {
  return caught();
}

int canele_local_size(const canele_engine_t* engine) try {
  if (engine == nullptr) return no_engine("canele_local_size");
  return fork::in_child ? reject_in_child("canele_local_size") : engine_of(engine).lifecycle.bootstrap->local_size();
} catch (...) {
  return caught();
}

uint64_t canele_now(const canele_engine_t* engine) {
  return engine != nullptr ? engine_of(engine).platform.now_ns() : posix_platform().now_ns();
}

int canele_progress(canele_engine_t* engine) try {
  if (engine == nullptr) [[unlikely]]
    return no_engine("canele_progress");
  if (!may_progress(engine_of(engine))) [[unlikely]]
    return reject_in_child("canele_progress");
  Engine& e = engine_of(engine);
  if (e.step() > 0) return 1;
  e.progress.empty_polls.found_nothing();
  return 0;
} catch (...) {
  return caught();
}

int canele_session_open(canele_engine_t* engine, const char* label, unsigned flags, canele_session_t** session) try {
  if (engine == nullptr || label == nullptr || session == nullptr) {
    return error(CANELE_EINVAL, "canele_session_open: engine, label and session must be given");
  }
  if (fork::in_child) return reject_in_child("canele_session_open");
  constexpr std::size_t longest = 63;
  const std::string_view name(label);
  if (name.empty() || name.size() > longest) {
    return error(CANELE_EINVAL, "canele_session_open: a label has 1 to " + std::to_string(longest) + " bytes, not " +
                                    std::to_string(name.size()));
  }
  for (const std::string_view reserved : {std::string_view("canele."), std::string_view("barrier:"),
                                          std::string_view("active:"), collectives::Group::label_prefix}) {
    if (!name.starts_with(reserved)) continue;
    return error(CANELE_EINVAL,
                 "canele_session_open: labels that begin with \"" + std::string(reserved) + "\" are the library's own");
  }
  if ((flags & ~static_cast<unsigned>(CANELE_ORDER_ACROSS_TAGS)) != 0) {
    return error(CANELE_EINVAL, "canele_session_open: unknown flags " + std::to_string(flags));
  }
  int code = CANELE_OK;
  device::find_if_loaded(engine_of(engine));  // a program loads its library when it first uses a device
  Session* opened = open_session(engine_of(engine), name, flags, &code);
  if (opened != nullptr) *session = public_of(*opened);
  return code;
} catch (...) {
  return caught();
}

int canele_session_close(canele_session_t* session) try {
  if (session == nullptr) return error(CANELE_EINVAL, "canele_session_close: session is NULL");
  if (fork::in_child) return reject_in_child("canele_session_close");
  Session& s = session_of(session);
  Engine& e = engine_of(*s.context);
  int code = stop_active_messages(s);
  if (code != CANELE_OK) return code;
  e.lock_for_callback();
  if (!s.open) {
    code = error(CANELE_ESTATE, "canele_session_close: \"" + s.label + "\" is closed already");
  } else if (s.pending != 0) {
    code = error(CANELE_EBUSY,
                 "canele_session_close: " + std::to_string(s.pending) + " requests of \"" + s.label + "\" are pending");
  } else {
    rejection::report(e, s, rejection::drop_all(e, s));
    rtr::forget_session(e, s);
    // What other ranks have sent for their next barrier stays: they may have opened a session of this label again
    // already.
    if (s.barrier != nullptr) e.sessions.close(*s.barrier);
    s.barrier = nullptr;
    e.sessions.close(s);
  }
  e.unlock();
  e.after_submit();
  return code;
} catch (...) {
  return caught();
}

canele_engine_t* canele_session_engine(const canele_session_t* session) {
  if (session == nullptr) return nullptr;
  return public_of(engine_of(*session_of(const_cast<canele_session_t*>(session)).context));
}

int canele_barrier(canele_session_t* session) try {
  if (session == nullptr) return error(CANELE_EINVAL, "canele_barrier: session is NULL");
  if (fork::in_child) return reject_in_child("canele_barrier");
  Session& s = session_of(session);
  if (!s.open) return error(CANELE_ESTATE, "canele_barrier: session \"" + s.label + "\" is closed");
  if (s.barrier == nullptr) {
    int code = CANELE_OK;
    s.barrier = open_session(engine_of(*s.context), "barrier:" + s.label, CANELE_ORDER_PER_TAG, &code);
    if (s.barrier == nullptr) return code;
  }
  return barrier(*s.barrier, 0);
} catch (...) {
  return caught();
}
