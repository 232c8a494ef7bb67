// SPDX-License-Identifier: BSD-3-Clause
//
// The child of an MPI process calls MPI: each function returns MPI_ERR_OTHER, a fatal error ends the child only, and
// the parent's messages arrive as if there were no child.
//
// Run by ctest, under canele-run with 2 ranks. The main thread, and the library's own. The child's pending requests are
// those of its parent, which completes them afterwards.
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

int wrong = 0;

void expect_refused(int code, const char* call) {
  int error_class = MPI_SUCCESS, length = 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text, &length);
  if (error_class == MPI_ERR_OTHER && std::strstr(text, "fork") != nullptr) return;
  std::printf("in the child %s answered %d (%s)\n", call, code, text);
  ++wrong;
}
#define REFUSED(call) expect_refused(call, #call)

void messages(MPI_Request* pending) {
  int in = 0, out = 1, flag = 0, index = 0, count = 0;
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  REFUSED(MPI_Send(&out, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
  REFUSED(MPI_Ssend(&out, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
  REFUSED(MPI_Isend(&out, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request));
  REFUSED(MPI_Issend(&out, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request));
  REFUSED(MPI_Recv(&in, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &status));
  REFUSED(MPI_Irecv(&in, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request));
  REFUSED(MPI_Sendrecv(&out, 1, MPI_INT, 1, 5, &in, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &status));
  REFUSED(MPI_Probe(1, 5, MPI_COMM_WORLD, &status));
  REFUSED(MPI_Iprobe(1, 5, MPI_COMM_WORLD, &flag, &status));
  REFUSED(MPI_Test(pending, &flag, &status));
  REFUSED(MPI_Wait(pending, &status));
  REFUSED(MPI_Testall(1, pending, &flag, MPI_STATUSES_IGNORE));
  REFUSED(MPI_Waitall(1, pending, MPI_STATUSES_IGNORE));
  REFUSED(MPI_Testany(1, pending, &index, &flag, &status));
  REFUSED(MPI_Waitany(1, pending, &index, &status));
  REFUSED(MPI_Testsome(1, pending, &count, &index, &status));
  REFUSED(MPI_Waitsome(1, pending, &count, &index, &status));
  REFUSED(MPI_Cancel(pending));
  REFUSED(MPI_Request_free(pending));
}

void the_rest() {
  int in = 0, out = 1, rank = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  REFUSED(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  REFUSED(MPI_Comm_size(MPI_COMM_WORLD, &rank));
  REFUSED(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  REFUSED(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm));
  REFUSED(MPI_Type_contiguous(2, MPI_INT, &type));
  REFUSED(MPI_Barrier(MPI_COMM_WORLD));
  REFUSED(MPI_Bcast(&in, 1, MPI_INT, 0, MPI_COMM_WORLD));
  REFUSED(MPI_Reduce(&in, &out, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
  REFUSED(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  REFUSED(MPI_Gather(&in, 1, MPI_INT, &out, 1, MPI_INT, 0, MPI_COMM_WORLD));
  REFUSED(MPI_Alltoall(&in, 1, MPI_INT, &out, 1, MPI_INT, MPI_COMM_WORLD));
  REFUSED(MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
  REFUSED(MPI_Ibarrier(MPI_COMM_WORLD, &request));
  REFUSED(MPI_Finalize());
  REFUSED(MPI_Init(nullptr, nullptr));
}

/// Returns how the child of rank 0 ended; fatal: with MPI's own error handler.
int run_child(MPI_Request* pending, bool fatal) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(30);
    if (fatal) {
      MPI_Barrier(MPI_COMM_WORLD);  // ends this process
      _exit(0);
    }
    messages(pending);
    the_rest();
    std::fflush(stdout);
    _exit(wrong == 0 ? 7 : 8);
  }
  int how = 0;
  waitpid(pid, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
}

}  // namespace

int main() {
  MPI_Init(nullptr, nullptr);
  int rank = 0, in = 0, out = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Request pending = MPI_REQUEST_NULL;
  out = 100 + rank;
  MPI_Irecv(&in, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, &pending);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const int ended_fatally = run_child(&pending, true);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int ended = run_child(&pending, false);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (ended_fatally != 1 || ended != 7) {
      std::printf("the children ended with %d and %d, 1 and 7 were expected\n", ended_fatally, ended);
      ++wrong;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&out, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD);
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (in != 101 - rank || sum != 201) ++wrong;
  MPI_Finalize();
  if (wrong != 0) std::printf("rank %d: %d things were wrong\n", rank, wrong);
  return wrong == 0 ? 0 : 1;
}
