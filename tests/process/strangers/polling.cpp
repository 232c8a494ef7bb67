// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that exchange messages with their partners in the other rank, and find out by one way of polling when these
// have ended: FORM THREADS BYTES ROUNDS. Rank 0 prints the processor time that its threads have used, in microseconds.
//
// Run by polling_test.py, with two ranks. THREADS threads in each rank. The measure is processor time, not elapsed
// time: on a machine with other work it tells which threads waste their turns.
#include <canele/canele.h>
#include <mpi.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

canele_engine_t* engine;
canele_session_t* session;

/// One exchange of a thread: both of its requests, which are to be completed.
struct Pair {
  canele_request_t of[2] = {};
};

void by_wait(Pair& pair) {
  canele_request_t* both[2] = {&pair.of[0], &pair.of[1]};
  canele_wait_all(2, both, nullptr);
}
void by_wait_any(Pair& pair) {
  canele_request_t* both[2] = {&pair.of[0], &pair.of[1]};
  for (int left = 2; left > 0; --left) {
    std::size_t which = 2;
    canele_wait_any(2, both, &which, nullptr);
    both[which] = nullptr;
  }
}
void by_test(Pair& pair) {
  for (canele_request_t& one : pair.of) {
    for (int done = 0; done == 0;) canele_test(&one, &done, nullptr);
  }
}
void by_queue(Pair& pair) {
  canele_queue_t queue = {};
  canele_request_t* ended[2];
  for (canele_request_t& one : pair.of) canele_request_on_queue(&one, &queue, nullptr);
  for (int left = 2; left > 0;) left -= canele_queue_poll(engine, &queue, ended, nullptr, 2);
}
void by_progress(Pair& pair) {
  canele_status_t status;
  for (canele_request_t& one : pair.of) {
    while (canele_request_status(&one, &status) != CANELE_OK) canele_progress(engine);
  }
}

void exchange(void (*complete)(Pair&), std::uint64_t tag, std::size_t bytes, int rounds) {
  std::vector<char> out(bytes, 1), in(bytes);
  const int other = 1 - canele_rank(engine);
  for (int i = 0; i < rounds; ++i) {
    Pair pair;
    canele_irecv(session, other, tag, CANELE_TAG_EXACT, in.data(), bytes, &pair.of[0]);
    canele_isend(session, other, tag, out.data(), bytes, &pair.of[1]);
    complete(pair);
  }
}

/// Makes such an exchange by MPI; `form` is the function's name.
void exchange_by_mpi(std::string_view form, int tag, int bytes, int rounds) {
  std::vector<char> out(static_cast<std::size_t>(bytes), 1), in(out.size());
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  for (int i = 0; i < rounds; ++i) {
    MPI_Request both[2];
    int done = 0, which = 0, indices[2], flag = 0;
    MPI_Isend(out.data(), bytes, MPI_BYTE, 1 - me, tag, MPI_COMM_WORLD, &both[1]);
    while (form == "MPI_Iprobe" && flag == 0) MPI_Iprobe(1 - me, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Irecv(in.data(), bytes, MPI_BYTE, 1 - me, tag, MPI_COMM_WORLD, &both[0]);
    for (int left = 2; left > 0;) {
      flag = done = 0;
      if (form == "MPI_Wait" || form == "MPI_Iprobe") MPI_Waitall(2, both, MPI_STATUSES_IGNORE), done = 2;
      if (form == "MPI_Waitany") MPI_Waitany(2, both, &which, MPI_STATUS_IGNORE), done = 1;
      if (form == "MPI_Test") MPI_Test(&both[left - 1], &flag, MPI_STATUS_IGNORE), done = flag;
      if (form == "MPI_Testany") MPI_Testany(2, both, &which, &flag, MPI_STATUS_IGNORE), done = flag;
      if (form == "MPI_Testall") MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE), done = 2 * flag;
      if (form == "MPI_Testsome") MPI_Testsome(2, both, &done, indices, MPI_STATUSES_IGNORE);
      left -= done;
    }
  }
}

long processor_us() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string form = argv[1];
  const int threads = std::atoi(argv[2]), bytes = std::atoi(argv[3]), rounds = std::atoi(argv[4]);
  const bool by_mpi = form.starts_with("MPI_");
  int rank = 0, provided = 0;
  if (by_mpi) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    if (canele_init(nullptr, &engine) != CANELE_OK) return 2;
    if (canele_session_open(engine, "polling", 0, &session) != CANELE_OK) return 2;
    rank = canele_rank(engine);
    canele_barrier(session);
  }
  void (*const complete)(Pair&) = form == "wait"       ? by_wait
                                  : form == "wait_any" ? by_wait_any
                                  : form == "test"     ? by_test
                                  : form == "queue"    ? by_queue
                                                       : by_progress;
  const long before = processor_us();
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([=] {
      if (by_mpi) return exchange_by_mpi(form, i, bytes, rounds);
      exchange(complete, static_cast<std::uint64_t>(i), static_cast<std::size_t>(bytes), rounds);
    });
  }
  for (std::thread& one : all) one.join();
  if (rank == 0) std::printf("%ld\n", processor_us() - before);
  if (by_mpi) return MPI_Finalize();
  canele_session_close(session);
  return canele_finalize(engine);
}
