// SPDX-License-Identifier: BSD-3-Clause
//
// Error codes, their texts, and ending the job. The last error is kept per thread.
//
// Errors are fatal by default, as MPI says. A fatal error ends the whole job through the launcher.
#include "starpu_glue/mpi/core/error.hpp"

#include <canele/canele.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>

#include "starpu_glue/mpi/core/error_codes.hpp"
#include "starpu_glue/mpi/core/output.hpp"
#include "starpu_glue/mpi/core/state.hpp"

namespace canele::mpi {
namespace {

struct LastError {
  int code = MPI_SUCCESS;
  char detail[400] = "";
};
/// Allocated by the first error. All thread_local memory of this library has to fit into the small area that the loader
/// reserves for libraries opened late (see free_requests).
thread_local std::unique_ptr<LastError> last_error;

/// By code.
constexpr const char* kTexts[] = {
    "MPI_SUCCESS: no error",
    "MPI_ERR_BUFFER: wrong buffer",
    "MPI_ERR_COUNT: wrong count",
    "MPI_ERR_TYPE: wrong datatype",
    "MPI_ERR_TAG: wrong tag",
    "MPI_ERR_COMM: wrong communicator",
    "MPI_ERR_RANK: wrong rank",
    "MPI_ERR_REQUEST: wrong request",
    "MPI_ERR_ROOT: wrong root",
    "MPI_ERR_GROUP: wrong group",
    "MPI_ERR_OP: wrong operation",
    "MPI_ERR_TOPOLOGY: wrong topology",
    "MPI_ERR_DIMS: wrong dimensions",
    "MPI_ERR_ARG: wrong argument",
    "MPI_ERR_UNKNOWN: unknown error",
    "MPI_ERR_TRUNCATE: the message is longer than the receive",
    "MPI_ERR_OTHER: other error",
    "MPI_ERR_INTERN: internal error",
    "MPI_ERR_PENDING: the operation is pending",
    "MPI_ERR_IN_STATUS: the error is in the status",
    "MPI_ERR_ACCESS: no permission to access the file",
    "MPI_ERR_AMODE: wrong access mode of a file",
    "MPI_ERR_ASSERT: wrong assertion",
    "MPI_ERR_BAD_FILE: wrong name of a file",
    "MPI_ERR_BASE: wrong base address",
    "MPI_ERR_CONVERSION: data could not be converted",
    "MPI_ERR_DISP: wrong displacement",
    "MPI_ERR_DUP_DATAREP: the data representation exists",
    "MPI_ERR_FILE_EXISTS: the file exists",
    "MPI_ERR_FILE_IN_USE: the file is in use",
    "MPI_ERR_FILE: wrong file",
    "MPI_ERR_INFO_KEY: wrong key of an info",
    "MPI_ERR_INFO_NOKEY: the info does not have the key",
    "MPI_ERR_INFO_VALUE: wrong value of an info",
    "MPI_ERR_INFO: wrong info",
    "MPI_ERR_IO: error of input or output",
    "MPI_ERR_KEYVAL: wrong attribute key",
    "MPI_ERR_LOCKTYPE: wrong type of lock",
    "MPI_ERR_NAME: the name was not published",
    "MPI_ERR_NO_MEM: no memory",
    "MPI_ERR_NOT_SAME: an argument is not the same on all ranks",
    "MPI_ERR_NO_SPACE: no space left for the file",
    "MPI_ERR_NO_SUCH_FILE: the file does not exist",
    "MPI_ERR_PORT: wrong port",
    "MPI_ERR_QUOTA: the quota is exceeded",
    "MPI_ERR_READ_ONLY: the file can only be read",
    "MPI_ERR_RMA_ATTACH: memory cannot be attached",
    "MPI_ERR_RMA_CONFLICT: conflicting accesses to a window",
    "MPI_ERR_RMA_RANGE: the access is beyond the window",
    "MPI_ERR_RMA_SHARED: memory cannot be shared",
    "MPI_ERR_RMA_SYNC: wrong synchronisation of a window",
    "MPI_ERR_SERVICE: wrong service",
    "MPI_ERR_SIZE: wrong size",
    "MPI_ERR_SPAWN: processes could not be started",
    "MPI_ERR_UNSUPPORTED_DATAREP: the data representation is not supported",
    "MPI_ERR_UNSUPPORTED_OPERATION: the operation is not supported",
    "MPI_ERR_WIN: wrong window",
    "MPI_ERR_RMA_FLAVOR: wrong flavor of a window",
    "MPI_ERR_PROC_ABORTED: a process has aborted",
    "MPI_ERR_VALUE_TOO_LARGE: the value does not fit its type",
    "MPI_ERR_SESSION: wrong session",
    "MPI_ERR_ERRHANDLER: wrong error handler",
    "MPI_ERR_ABI: wrong ABI",
};
static_assert(sizeof kTexts / sizeof kTexts[0] == MPI_ERR_ABI + 1);

int class_of(int error) {
  switch (error) {
    case CANELE_OK:
      return MPI_SUCCESS;
    case CANELE_EINVAL:
      return MPI_ERR_ARG;
    case CANELE_ERANK:
      return MPI_ERR_RANK;
    case CANELE_ETRUNC:
      return MPI_ERR_TRUNCATE;
    case CANELE_ENOMEM:
      return MPI_ERR_NO_MEM;
    case CANELE_ESTATE:
      return MPI_ERR_REQUEST;
    case CANELE_EACCESS:
      return MPI_ERR_RMA_RANGE;
    case CANELE_EREVOKED:
      return MPI_ERR_RMA_ATTACH;
    case CANELE_EPEER:
      return MPI_ERR_PROC_ABORTED;
    default:
      return MPI_ERR_OTHER;
  }
}

void print(const char* prefix, const char* format, va_list arguments) {
  char text[768], line[896];
  std::vsnprintf(text, sizeof text, format, arguments);
  if (canele_engine_t* running = engine(); running != nullptr && !in_child) {
    std::snprintf(line, sizeof line, "canele: rank %d: %s%s\n", canele_rank(running), prefix, text);
  } else {
    std::snprintf(line, sizeof line, "canele: %s%s\n", prefix, text);
  }
  say(line);
}

}  // namespace

bool say(const char* text) {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const bool written = std::fputs(text, stderr) >= 0 && std::fflush(stderr) == 0;
  const timespec at_once{};
  if (!written && errno == EPIPE && sigismember(&pending, SIGPIPE) != 1) sigtimedwait(&pipe, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return written;
}

int fail(int code, const char* format, ...) {
  if (last_error == nullptr) last_error.reset(new (std::nothrow) LastError);
  if (last_error == nullptr) return code;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error->detail, sizeof last_error->detail, format, arguments);
  va_end(arguments);
  last_error->code = code;
  return code;
}

int given(std::initializer_list<Argument> arguments) {
  for (const Argument& one : arguments) {
    if (one.value == nullptr) return fail(MPI_ERR_ARG, "the argument %s is NULL; expected: an address", one.name);
  }
  return MPI_SUCCESS;
}

int from_engine(int error) {
  if (error == CANELE_OK) return MPI_SUCCESS;
  return fail(class_of(error), "%s: %s", canele_error_string(error), canele_error_detail());
}

int from_status(int error, int source) {
  if (error == CANELE_OK) return MPI_SUCCESS;
  return fail(class_of(error), "%s (rank %d of MPI_COMM_WORLD)", canele_error_string(error), source);
}

const char* error_text(int code) {
  constexpr int kCount = sizeof kTexts / sizeof kTexts[0];
  return code >= 0 && code < kCount ? kTexts[code] : "not an MPI error code";
}

void describe_error(int code, char* text, int size) {
  if (code > MPI_ERR_LASTCODE && describe_added_code(code, text, size)) return;
  if (code != MPI_SUCCESS && last_error != nullptr && last_error->code == code) {
    std::snprintf(text, static_cast<std::size_t>(size), "%s: %s", error_text(code), last_error->detail);
  } else {
    std::snprintf(text, static_cast<std::size_t>(size), "%s", error_text(code));
  }
}

void fatal(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print("", format, arguments);
  va_end(arguments);
  flush_output();
  if (canele_engine_t* running = engine()) canele_abort(running, 1, "fatal error in MPI (see above)");
  std::abort();
}

void warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print("warning: ", format, arguments);
  va_end(arguments);
}

}  // namespace canele::mpi
