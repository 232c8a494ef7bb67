// SPDX-License-Identifier: BSD-3-Clause
//
// Several engines in one process of a job: at once, or one after the other.
//
// Usage: process_engines native | mpi | mpi-first | threads | late | after-failure |
//                        loop CYCLES [KIB_PER_CYCLE] | options | init
// Run by engines_test.py, settings_test.py. "threads" creates each engine in a thread of its own. Exit code 3:
// canele_init refused, with its words on stderr. Exit code 1: a fault of the library.
#include <canele/canele.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr int refused = 3;

canele_engine_t* make(const canele_options_t* options = nullptr) {
  canele_engine_t* engine = nullptr;
  const int code = canele_init(options, &engine);
  if (code == CANELE_OK) return engine;
  static_cast<void>(std::fprintf(stderr, "canele_init: code %d: %s\n", code, canele_error_detail()));
  std::exit(refused);
}

/// Sends each rank's number from rank to rank until it is back. Returns false if a call failed, or a wrong number came.
bool ring(canele_engine_t* engine, const char* label) {
  canele_session_t* session = nullptr;
  if (canele_session_open(engine, label, 0, &session) != CANELE_OK) return false;
  const int rank = canele_rank(engine), size = canele_size(engine);
  int number = rank;
  bool right = true;
  for (int turn = 1; turn <= size && right; ++turn) {
    const auto tag = static_cast<std::uint64_t>(turn);
    int came = -1;
    canele_request_t send{}, receive{};
    right = canele_irecv(session, (rank + size - 1) % size, tag, CANELE_TAG_EXACT, &came, sizeof came, &receive) ==
                CANELE_OK &&
            canele_isend(session, (rank + 1) % size, tag, &number, sizeof number, &send) == CANELE_OK;
    right = right && canele_wait(&send, nullptr) == CANELE_OK && canele_wait(&receive, nullptr) == CANELE_OK;
    number = came;
    right = right && number == (rank + size - turn % size) % size;
  }
  if (!right) static_cast<void>(std::fprintf(stderr, "ring %s of rank %d is wrong\n", label, rank));
  return canele_session_close(session) == CANELE_OK && right;
}

bool end(canele_engine_t* engine) { return canele_finalize(engine) == CANELE_OK; }

bool two_native() {
  canele_engine_t *first = make(), *second = make();
  // The labels are equal: a message that goes to the wrong engine would be found there.
  bool right = ring(first, "ring") && ring(second, "ring");
  right = end(first) && right;
  canele_engine_t* third = make();
  right = ring(third, "ring") && ring(second, "ring") && right;
  return end(second) && end(third) && right;
}

bool beside_mpi(bool mpi_first) {
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) std::exit(refused);
  int one = 1, sum = 0, size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (mpi_first) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  canele_engine_t* engine = make();
  sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  bool right = sum == size && ring(engine, "ring");
  if (mpi_first) right = end(engine) && right;
  MPI_Finalize();
  if (!mpi_first) right = ring(engine, "ring") && end(engine) && right;
  return right;
}

/// Leaves open which of the two engines a thread gets: each of them exists on all ranks.
bool by_threads() {
  bool right[2] = {};
  std::thread threads[2];
  for (int i = 0; i < 2; ++i) {
    threads[i] = std::thread([&mine = right[i]] {
      canele_engine_t* engine = make();
      mine = ring(engine, "ring");
      mine = end(engine) && mine;
    });
  }
  for (std::thread& one : threads) one.join();
  return right[0] && right[1];
}

/// An engine that a destructor ends, after main and after what the library does at exit.
struct Owner {
  ~Owner() {
    if (engine != nullptr && !end(engine)) std::_Exit(1);
  }
  canele_engine_t* engine = nullptr;
} owner;

bool ended_late() {
  owner.engine = make();
  return ring(owner.engine, "ring");
}

/// Tries options that no program should give.
bool refuses_options() {
  const char* const without_value[] = {"CANELE_VERBOSE"};
  const char* const none[] = {"CANELE_VERBOSE=1", nullptr};
  const canele_options_t wrong[] = {{sizeof(canele_options_t), without_value, 1},
                                    {sizeof(canele_options_t), none, 2},
                                    {sizeof(canele_options_t), nullptr, 1},
                                    {sizeof(canele_options_t) - 1, nullptr, 0}};
  bool right = true;
  for (const canele_options_t& options : wrong) {
    canele_engine_t* engine = nullptr;
    right = canele_init(&options, &engine) == CANELE_EINVAL && engine == nullptr && right;
    std::printf("%s\n", canele_error_detail());
  }
  return right;
}

/// Rank 0 fails to make its first engine, and makes another one; the others wait for it all the time.
bool after_a_failure() {
  const char* place = std::getenv("PMIX_RANK");
  if (place == nullptr) place = std::getenv("PMI_RANK");
  if (place != nullptr && std::strcmp(place, "0") == 0) {
    const char* const settings[] = {"CANELE_DRIVERS=tcp:nowhere0"};
    const canele_options_t options{sizeof options, settings, 1};
    canele_engine_t* none = nullptr;
    if (canele_init(&options, &none) != CANELE_EDRIVER) return false;
  }
  canele_engine_t* engine = make();
  const bool right = ring(engine, "ring");
  return end(engine) && right;
}

long resident_kib() {
  long size = 0, pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
  if (file != nullptr) static_cast<void>(std::fclose(file));
  return pages * 4;
}

/// Makes and ends engines. Compares memory after a fifth of the cycles with memory at the end.
bool loop(int cycles, double kib_per_cycle) {
  long early = 0;
  int rank = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    canele_engine_t* engine = make();
    rank = canele_rank(engine);
    const bool right = ring(engine, "ring");
    if (!end(engine) || !right) return false;
    if (cycle == cycles / 5) early = resident_kib();
  }
  const long grown = resident_kib() - early;
  const double each = static_cast<double>(grown) / (cycles - cycles / 5);
  std::printf("rank %d: %d cycles, %ld KiB resident, %ld KiB more than after a fifth: %.2f a cycle\n", rank, cycles,
              early + grown, grown, each);
  return each <= kib_per_cycle;
}

}  // namespace

int main(int count, char** words) {
  const std::string how = count > 1 ? words[1] : "";
  bool right = false;
  if (how == "native") right = two_native();
  if (how == "mpi") right = beside_mpi(false);
  if (how == "mpi-first") right = beside_mpi(true);
  if (how == "threads") right = by_threads();
  if (how == "late") right = ended_late();
  if (how == "after-failure") right = after_a_failure();
  if (how == "loop" && count > 2) right = loop(std::atoi(words[2]), count > 3 ? std::atof(words[3]) : 1e9);
  if (how == "options") right = refuses_options();
  if (how == "init") right = end(make());
  return right ? 0 : 1;
}
