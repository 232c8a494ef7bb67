// SPDX-License-Identifier: BSD-3-Clause
//
// Start and end of the engine, with the settings that StarPU makes through NewMadeleine's variables.
//
// A CANELE_ variable of the user always wins over the NMAD_ and PIOM_ variables, which StarPU sets by itself. What a
// tool has written by MPI_T_cvar_write wins over both.
#include "starpu_glue/mpi/environment/start.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/profile.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/messages/request.hpp"
#include "starpu_glue/mpi/tools/variables.hpp"
#include "starpu_glue/mpi/windows/window.hpp"

namespace canele::mpi {
namespace {

constinit std::atomic<bool> forks_noticed{false};

/// Runs in the child, whose other threads have vanished at arbitrary points: uses plain memory accesses only. Ends the
/// fast path of all calls, so that each call reaches the check that rejects it.
void after_fork_in_child() {
  if (phase() == Phase::before && engine() == nullptr) return;
  in_child = true;
  enable_fast_path(false);
}

/// Returns what a tool or the environment says about a setting, or nullptr.
const char* setting(const char* name) {
  const char* const written = tools::written_setting(name);
  return written != nullptr ? written : std::getenv(name);
}

/// Returns "CANELE_STRATEGY=..." for NMAD_STRATEGY, or "".
std::string strategy_setting() {
  const char* wanted = std::getenv("NMAD_STRATEGY");
  if (wanted == nullptr || *wanted == '\0' || setting("CANELE_STRATEGY") != nullptr) return "";
  const std::string_view name(wanted);
  if (name == "prio") return "CANELE_STRATEGY=priority";
  if (name == "aggreg") return "CANELE_STRATEGY=aggregate";
  if (name == "default" || name == "fifo") return "CANELE_STRATEGY=fifo";
  warn("NMAD_STRATEGY=%s is unknown here and ignored; expected: prio, aggreg, default (or set CANELE_STRATEGY)",
       wanted);
  return "";
}

/// Returns the file of CANELE_PROFILE, or nullptr.
const char* profile_file() {
  const char* file = setting("CANELE_PROFILE");
  return file == nullptr || *file == '\0' ? nullptr : file;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

/// Rejects CANELE_WORKER=none with PIOM_DEDICATED: StarPU, which sets that variable, relies on the library for
/// progress.
int check_worker() {
  const char* worker = setting("CANELE_WORKER");
  if (!is_set("PIOM_DEDICATED") || worker == nullptr || std::string_view(worker) != "none") return MPI_SUCCESS;
  return fail(MPI_ERR_OTHER,
              "CANELE_WORKER=none, but PIOM_DEDICATED=1, which StarPU sets, needs a progress thread: no request of "
              "StarPU would end without one; expected: CANELE_WORKER unset, bound or auto");
}

/// Returns whether the environment has a setting, by its name or its old name.
bool is_given(const char* name, const char* old_name) {
  return setting(name) != nullptr || std::getenv(old_name) != nullptr;
}

/// Asks for a worker, and for settings that suit StarPU's threads, which compute or poll all the time, on too few
/// cores. Turns membarrier off: it would interrupt every core of the job each time that the worker sleeps.
void add_worker(std::vector<const char*>& settings) {
  if (setting("CANELE_WORKER") != nullptr) return;
  settings.push_back("CANELE_WORKER=bound");
  if (!is_given("CANELE_HOST_THREADS", "CANELE_WORKER_COMPANY")) settings.push_back("CANELE_HOST_THREADS=busy");
  if (!is_given("CANELE_EXPERT_SHM_MEMBARRIER", "CANELE_SHM_MEMBARRIER"))
    settings.push_back("CANELE_EXPERT_SHM_MEMBARRIER=off");
}

constinit std::mutex holding;  // guards the number of users of the engine, and its start and end
constinit int holders = 0;

/// Starts the engine. Under the lock.
int start_engine() {
  if (!forks_noticed.exchange(true) && pthread_atfork(nullptr, nullptr, after_fork_in_child) != 0)
    return fail(MPI_ERR_NO_MEM, "no memory to notice forks");
  if (const int code = check_worker(); code != MPI_SUCCESS) return code;
  std::vector<const char*> settings;
  const std::string strategy = strategy_setting();
  if (!strategy.empty()) settings.push_back(strategy.c_str());
  // With PIOM_DEDICATED_WAIT, too: StarPU only pins the worker later, and under STARPU_MPI_NOBIND not even that.
  if (is_set("PIOM_DEDICATED")) add_worker(settings);
  const std::vector<std::string> written = tools::written_settings();
  for (const std::string& one : written) settings.push_back(one.c_str());
  canele_options_t options{};
  options.struct_size = sizeof options;
  options.settings = settings.data();
  options.settings_count = settings.size();
  canele_engine_t* made = nullptr;
  if (const int error = canele_init(&options, &made); error != CANELE_OK) return from_engine(error);
  mark_all_in_use = mark_communicators_in_use;
  publish_engine(made);
  if (profile_file() != nullptr) profile::start();
  return MPI_SUCCESS;
}

/// Ends the engine. Under the lock.
int end_engine() {
  if (const char* file = profile_file()) profile::stop(file, canele_rank(engine()), canele_size(engine()));
  canele_engine_t* last = take_engine_back();
  close_windows();
  close_groups();
  const int error = canele_finalize(last);
  const int code = error == CANELE_OK ? MPI_SUCCESS : from_engine(error);
  forget_communicators();
  return code;
}

}  // namespace

bool worker_wanted() {
  const char* worker = setting("CANELE_WORKER");
  return worker == nullptr || std::string_view(worker).starts_with("bound");
}

int start(int asked_level) {
  if (in_child) return reject_in_child();
  Phase expected = Phase::before;
  if (!change_phase(&expected, Phase::ending)) {
    return fail(MPI_ERR_OTHER, expected == Phase::after ? "MPI cannot be initialized again after MPI_Finalize"
                                                        : "MPI is initialized already");
  }
  int code = hold_engine();
  if (code == MPI_SUCCESS) {
    code = open_world(engine());
    if (code != MPI_SUCCESS) drop_engine(false);
  }
  if (code != MPI_SUCCESS) {
    set_phase(Phase::before);
    return code;
  }
  set_main_thread(asked_level);
  set_phase(Phase::running);
  if (profile_file() == nullptr) enable_fast_path(true);
  return MPI_SUCCESS;
}

int stop() {
  // While MPI still works, and says so, as the program's functions expect.
  if (const int code = delete_attributes_of_self(); code != MPI_SUCCESS) return code;
  Phase expected = Phase::running;
  if (!change_phase(&expected, Phase::ending)) {
    if (expected == Phase::ending) return fail(MPI_ERR_OTHER, "MPI_Finalize is running already in another thread");
    return fail(MPI_ERR_OTHER, "MPI_Finalize was called without MPI_Init, or for a second time");
  }
  enable_fast_path(false);
  const int code = drop_engine(true);
  set_phase(Phase::after);
  return code;
}

int hold_engine() {
  if (in_child) return reject_in_child();
  const std::lock_guard guard(holding);
  if (holders == 0) {
    if (const int code = start_engine(); code != MPI_SUCCESS) return code;
  }
  ++holders;
  return MPI_SUCCESS;
}

int drop_engine(bool with_world) {
  const std::lock_guard guard(holding);
  if (--holders == 0) return end_engine();
  if (with_world) close_world();
  return MPI_SUCCESS;
}

}  // namespace canele::mpi
