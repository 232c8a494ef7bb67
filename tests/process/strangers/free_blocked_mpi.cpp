// SPDX-License-Identifier: BSD-3-Clause
//
// A communicator is freed while another thread is blocked in MPI_Recv, MPI_Probe or MPI_Ssend on it, as MPI allows. The
// call ends as if nothing had been freed. Other communicators are made and freed meanwhile, so that its memory would be
// used again.
//
// Run by ctest, under canele-run with 2 ranks: process_strangers_free_blocked_mpi. Two threads in each rank. Ranks of
// the communicator are in reverse order, so that a status filled from other memory shows. The state of a thread in the
// system, "sleeping", tells that it is blocked.
#include <mpi.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

enum class Call { recv, recv_typed, probe, ssend };

void must(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "%s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

char state_of(long thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  std::FILE* file = std::fopen(path.c_str(), "r");
  char state = '?';
  if (file == nullptr) return state;
  if (std::fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
  std::fclose(file);
  return state;
}

void make_and_free_others() {
  for (int i = 0; i < 20; ++i) {
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Comm_free(&other);
  }
}

/// For rank 0: blocks in the call until rank 1, which has rank 0 in `comm`, has done its part.
void block_in(Call call, MPI_Comm comm) {
  int words[4] = {0, 0, 0, 0};
  MPI_Status status;
  MPI_Datatype gaps;
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  switch (call) {
    case Call::recv:
      MPI_Recv(words, 2, MPI_INT, MPI_ANY_SOURCE, 7, comm, &status);
      must(words[0] == 41 && words[1] == 42, "wrong data");
      break;
    case Call::recv_typed:
      MPI_Recv(words, 1, gaps, MPI_ANY_SOURCE, 7, comm, &status);
      must(words[0] == 41 && words[2] == 42, "wrong data");
      break;
    case Call::probe:
      MPI_Probe(MPI_ANY_SOURCE, 7, comm, &status);
      break;
    case Call::ssend:
      words[0] = 41;
      words[1] = 42;
      MPI_Ssend(words, 2, MPI_INT, 0, 7, comm);
      status.MPI_SOURCE = 0;
      break;
  }
  must(status.MPI_SOURCE == 0, "wrong source: the communicator was gone");
  MPI_Type_free(&gaps);
}

void try_one(Call call) {
  int rank, go = 0, words[2] = {41, 42};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
  if (rank == 0) {
    std::atomic<long> thread{0};
    std::thread blocked([&, mine = comm] {
      thread = ::syscall(SYS_gettid);
      block_in(call, mine);
    });
    while (thread == 0) sched_yield();
    while (call != Call::probe && state_of(thread) != 'S') sched_yield();
    MPI_Barrier(MPI_COMM_WORLD);  // MPI_Probe never sleeps: by now it has begun, or the message comes before it
    if (call != Call::probe) MPI_Comm_free(&comm);
    make_and_free_others();
    MPI_Send(&go, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    blocked.join();
    if (call == Call::probe) {
      MPI_Recv(words, 2, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE);
      MPI_Comm_free(&comm);
    }
    make_and_free_others();
    return;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Recv(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request request;
  if (call == Call::ssend) {
    MPI_Irecv(words, 2, MPI_INT, 1, 7, comm, &request);
  } else {
    MPI_Isend(words, 2, MPI_INT, 1, 7, comm, &request);
  }
  MPI_Comm_free(&comm);
  make_and_free_others();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  must(provided == MPI_THREAD_MULTIPLE, "threads are not provided");
  for (const Call call : {Call::recv, Call::recv_typed, Call::probe, Call::ssend}) try_one(call);
  MPI_Finalize();
  return 0;
}
