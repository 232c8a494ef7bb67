// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Init to MPI_Abort, time, names.
//
// Called from any thread. MPI_Finalize may be called by another thread than MPI_Init, as StarPU does. Any number of
// threads may call at any time. The thread level reported as provided is nevertheless the one asked for, as MPI
// requires, and MPI_THREAD_SINGLE after MPI_Init.
#include <dlfcn.h>
#include <mpi-ext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "starpu_glue/mpi/communicators/call.hpp"
#include "starpu_glue/mpi/communicators/communicator.hpp"
#include "starpu_glue/mpi/core/device.hpp"
#include "starpu_glue/mpi/core/output.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/mpi/environment/start.hpp"

namespace canele::mpi {
namespace {

bool is_thread_level(int level) {
  return level == MPI_THREAD_SINGLE || level == MPI_THREAD_FUNNELED || level == MPI_THREAD_SERIALIZED ||
         level == MPI_THREAD_MULTIPLE;
}

/// Returns whether StarPU is in this process, and sends one message to many ranks itself (its cooperative sends). It
/// then reads main memory also if the data is valid on a device only, and would send stale data.
bool starpu_reads_main_memory() {
  const char* const setting = std::getenv("STARPU_MPI_COOP_SENDS");
  const bool cooperates = setting == nullptr || std::strcmp(setting, "0") != 0;
  return cooperates && dlsym(RTLD_DEFAULT, "starpu_mpi_isend_detached") != nullptr;
}

/// Returns whether the program may hand over buffers of CUDA devices.
bool query_cuda_support() {
  if (!note_devices()) return false;
  if (!starpu_reads_main_memory()) return true;
  static std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed)) {
    warn(
        "MPIX_Query_cuda_support answers 0 to StarPU: its cooperative sends take data of a GPU from main memory, which "
        "may be old; expected for GPU memory in messages: STARPU_MPI_COOP_SENDS=0");
  }
  return false;
}

}  // namespace
}  // namespace canele::mpi

using namespace canele::mpi;

extern "C" int PMPI_Init_thread(int*, char***, int required, int* provided) {
  const Call call = Call::any_time("MPI_Init_thread");
  if (!is_thread_level(required)) {
    return call.end(
        fail(MPI_ERR_ARG, "thread level %d; expected: one of MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE", required));
  }
  if (const int code = given({{"provided", provided}}); code != MPI_SUCCESS) return call.end(code);
  *provided = required;
  return call.end(start(required));
}
CANELE_MPI_NAME(Init_thread);

extern "C" int PMPI_Init(int*, char***) { return Call::any_time("MPI_Init").end(start(MPI_THREAD_SINGLE)); }
CANELE_MPI_NAME(Init);

extern "C" int PMPI_Initialized(int* flag) {
  if (const int code = given({{"flag", flag}}); code != MPI_SUCCESS) return Call::any_time("MPI_Initialized").end(code);
  const Phase now = phase();
  *flag = now == Phase::running || now == Phase::after ? 1 : 0;
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Initialized);

extern "C" int PMPI_Finalize(void) {
  const Call call("MPI_Finalize");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  int code = may_block();
  if (code == MPI_SUCCESS) code = stop();
  return call.end(code);
}
CANELE_MPI_NAME(Finalize);

extern "C" int PMPI_Finalized(int* flag) {
  if (const int code = given({{"flag", flag}}); code != MPI_SUCCESS) return Call::any_time("MPI_Finalized").end(code);
  *flag = phase() == Phase::after ? 1 : 0;
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Finalized);

extern "C" int PMPI_Query_thread(int* provided) {
  const Call call("MPI_Query_thread");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"provided", provided}}); code != MPI_SUCCESS) return call.end(code);
  *provided = thread_level();
  return call.end(MPI_SUCCESS);
}
CANELE_MPI_NAME(Query_thread);

extern "C" int PMPI_Is_thread_main(int* flag) {
  const Call call("MPI_Is_thread_main");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"flag", flag}}); code != MPI_SUCCESS) return call.end(code);
  *flag = is_main_thread() ? 1 : 0;
  return call.end(MPI_SUCCESS);
}
CANELE_MPI_NAME(Is_thread_main);

extern "C" int PMPI_Abort(MPI_Comm, int code) {
  const Call call("MPI_Abort");
  char text[96];
  std::snprintf(text, sizeof text, "canele: rank %d: MPI_Abort was called with code %d\n", canele_rank(engine()), code);
  say(text);
  flush_output();
  canele_abort(engine(), code, "MPI_Abort was called");
  return MPI_ERR_INTERN;
}
CANELE_MPI_NAME(Abort);

extern "C" double PMPI_Wtime(void) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
CANELE_MPI_NAME(Wtime);

extern "C" double PMPI_Wtick(void) {
  timespec step{};
  clock_getres(CLOCK_MONOTONIC, &step);
  return static_cast<double>(step.tv_sec) + static_cast<double>(step.tv_nsec) * 1e-9;
}
CANELE_MPI_NAME(Wtick);

extern "C" int PMPI_Get_processor_name(char* name, int* length) {
  const Call call("MPI_Get_processor_name");
  if (call.rejected()) [[unlikely]]
    return call.end(reject_in_child());
  if (const int code = given({{"name", name}, {"length", length}}); code != MPI_SUCCESS) return call.end(code);
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  if (gethostname(host, sizeof host - 1) != 0) {
    return call.end(fail(MPI_ERR_OTHER, "the host name is not known: %s", std::strerror(errno)));
  }
  *length = std::snprintf(name, sizeof host, "%s", host);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Get_processor_name);

extern "C" int PMPI_Get_version(int* version, int* subversion) {
  if (const int code = given({{"version", version}, {"subversion", subversion}}); code != MPI_SUCCESS)
    return Call::any_time("MPI_Get_version").end(code);
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Get_version);

extern "C" int PMPI_Get_library_version(char* version, int* length) {
  if (const int code = given({{"version", version}, {"length", length}}); code != MPI_SUCCESS)
    return Call::any_time("MPI_Get_library_version").end(code);
  *length = std::snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
                          "Canele %s (MPI %d.%d without files and spawned processes)", canele_version(), MPI_VERSION,
                          MPI_SUBVERSION);
  return MPI_SUCCESS;
}
CANELE_MPI_NAME(Get_library_version);

extern "C" int MPIX_Query_cuda_support(void) { return query_cuda_support() ? 1 : 0; }
extern "C" int MPIX_Query_hip_support(void) { return 0; }
extern "C" int MPIX_Query_rocm_support(void) { return 0; }
