// SPDX-License-Identifier: BSD-3-Clause
//
// Engines as contexts: many in each process, each used by threads of its own; and the values that ranks exchange on
// each engine.
//
// Usage: process_contexts values ENGINES | death RANK | abandoned RANK | traffic ENGINES | beside-mpi ENGINES |
//                         cost ENGINES
// Run by engines_test.py; cost is for docs/job.md. Exit code 3: canele_init refused, with its words on stderr. Exit
// code 1: a fault of the library.
#include <canele/job.h>
#include <mpi.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int refused = 3;

canele_engine_t* make() {
  canele_engine_t* engine = nullptr;
  if (canele_init(nullptr, &engine) == CANELE_OK) return engine;
  static_cast<void>(std::fprintf(stderr, "canele_init: %s\n", canele_error_detail()));
  std::exit(refused);
}

bool right(bool holds, const char* what, int engine) {
  if (!holds)
    static_cast<void>(std::fprintf(stderr, "engine %d: %s is wrong: %s\n", engine, what, canele_error_detail()));
  return holds;
}

/// Calls one(i) for each engine, in a thread for each. Returns false if a call did.
bool by_threads(int engines, const std::function<bool(int)>& one) {
  std::vector<char> well(static_cast<std::size_t>(engines));
  std::vector<std::thread> threads;
  for (int i = 0; i < engines; ++i)
    threads.emplace_back([&, i] { well[static_cast<std::size_t>(i)] = one(i) ? 1 : 0; });
  bool all = true;
  for (std::thread& thread : threads) thread.join();
  for (const char one_well : well) all = all && one_well != 0;
  return all;
}

std::vector<canele_engine_t*> make_all(int engines) {
  std::vector<canele_engine_t*> all;
  for (int i = 0; i < engines; ++i) all.push_back(make());
  return all;
}

/// Ends the engines in an order that is not the one in which they were made; 5 shares no divisor with a power of two.
bool end_all(const std::vector<canele_engine_t*>& all) {
  bool well = true;
  std::vector<char> ended(all.size());
  for (std::size_t i = 0, at = 3; i < all.size(); ++i, at += 5) {
    while (ended[at % all.size()] != 0) ++at;
    ended[at % all.size()] = 1;
    well = right(canele_finalize(all[at % all.size()]) == CANELE_OK, "finalize", static_cast<int>(at)) && well;
  }
  return well;
}

// ---- values ---------------------------------------------------------------------------------------------------------

std::string value_of(int engine, int rank, int turn) {
  const std::size_t length = static_cast<std::size_t>((engine + 1) * (rank + 1) * (turn + 1)) * 37;
  return std::string(length, static_cast<char>('a' + (engine * 7 + rank * 3 + turn) % 26));
}

bool hosts(canele_engine_t* engine, int number) {
  const int size = canele_size(engine);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::size_t count = 0;
  int index = -1, mine = -2;
  char name[CANELE_HOST_NAME_SIZE] = "";
  bool well = canele_local_ranks(engine, ranks.data(), ranks.size(), &count) == CANELE_OK &&
              static_cast<int>(count) == canele_local_size(engine) &&
              ranks[static_cast<std::size_t>(canele_local_rank(engine))] == canele_rank(engine);
  well = well && canele_rank_host(engine, canele_rank(engine), &mine, nullptr, 0) == CANELE_OK;
  for (std::size_t i = 0; i < count && well; ++i) {
    well =
        canele_rank_host(engine, ranks[i], &index, name, sizeof name) == CANELE_OK && index == mine && name[0] != '\0';
  }
  return right(well, "the list of local ranks, or a host,", number);
}

/// Publishes, exchanges and checks, several times.
bool exchange_values(canele_engine_t* engine, int number) {
  const int rank = canele_rank(engine), size = canele_size(engine);
  std::string got(CANELE_PUBLISH_VALUE_MAX, ' ');
  for (int turn = 0; turn < 3; ++turn) {
    const std::string mine = value_of(number, rank, turn), key = "turn " + std::to_string(turn);
    if (!right(canele_publish(engine, "last", mine.data(), mine.size()) == CANELE_OK &&
                   canele_publish(engine, key.c_str(), mine.data(), mine.size()) == CANELE_OK,
               "publish", number) ||
        !right(canele_exchange(engine, UINT64_MAX) == CANELE_OK, "exchange", number))
      return false;
    for (int of = 0; of < size; ++of) {
      for (int then = 0; then <= turn + 1; ++then) {
        const std::string wanted = then <= turn ? "turn " + std::to_string(then) : "last";
        const std::string expected = value_of(number, of, then <= turn ? then : turn);
        std::size_t length = got.size();
        const int code = canele_lookup(engine, of, wanted.c_str(), got.data(), &length);
        if (!right(code == CANELE_OK && got.compare(0, length, expected) == 0, "lookup", number)) return false;
      }
    }
  }
  return hosts(engine, number);
}

bool values(int engines) {
  const std::vector<canele_engine_t*> all = make_all(engines);
  const bool well = by_threads(engines, [&](int i) { return exchange_values(all[static_cast<std::size_t>(i)], i); });
  return end_all(all) && well;
}

/// One rank is killed; the exchange of the others ends with an error, and what was exchanged before stays.
bool death(int victim) {
  canele_engine_t* engine = make();
  bool well = exchange_values(engine, 0);
  if (canele_rank(engine) == victim) static_cast<void>(std::raise(SIGKILL));
  const int code = canele_exchange(engine, UINT64_MAX);
  well = right(code == CANELE_EPEER, "the exchange without a rank", 0) && well;
  std::printf("exchange without rank %d: %s\n", victim, canele_error_string(code));
  std::size_t length = 0;
  well = right(canele_lookup(engine, victim, "last", nullptr, &length) == CANELE_ETRUNC, "an old value", 0) && well;
  static_cast<void>(canele_finalize(engine));
  return well;
}

/// One rank never exchanges. The exchange of the others is still under way when they end their engines: the first one
/// to do so ends it for those that still wait.
bool abandoned(int absent) {
  canele_engine_t* engine = make();
  bool well = right(canele_publish(engine, "key", "value", 5) == CANELE_OK, "publish", 0);
  if (canele_rank(engine) != absent) {
    const int code = canele_exchange(engine, canele_now(engine) + 20'000'000);
    well = right(code == CANELE_ETIMEOUT || code == CANELE_ESTATE, "an exchange without a rank", 0) && well;
  }
  return right(canele_finalize(engine) == CANELE_OK, "finalize", 0) && well;
}

// ---- traffic --------------------------------------------------------------------------------------------------------

constexpr std::size_t lengths[] = {0, 8, 300, 5000, 70'000, 300'000};

void fill(std::vector<unsigned char>& data, int engine, int from, std::uint64_t tag) {
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<unsigned char>(i * 31 + i / 251 + static_cast<std::size_t>(engine * 17 + from * 5) + tag);
}

/// Sends to the next rank and receives from the one before. The labels and tags of all engines are equal: a message
/// that goes to the wrong engine would be found there, with the wrong content.
bool ring(canele_engine_t* engine, int number) {
  const int rank = canele_rank(engine), size = canele_size(engine);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  canele_session_t* session = nullptr;
  if (!right(canele_session_open(engine, "ring", 0, &session) == CANELE_OK, "session_open", number)) return false;
  bool well = true;
  for (std::uint64_t tag = 0; tag < 60 && well; ++tag) {
    const std::size_t length = lengths[tag % std::size(lengths)];
    std::vector<unsigned char> sent(length), came(length), expected(length);
    fill(sent, number, rank, tag);
    fill(expected, number, before, tag);
    canele_request_t send{}, receive{};
    well = canele_irecv(session, before, tag, CANELE_TAG_EXACT, came.data(), length, &receive) == CANELE_OK &&
           canele_isend(session, next, tag, sent.data(), length, &send) == CANELE_OK;
    canele_request_t* both[] = {&send, &receive};
    well = right(well && canele_wait_all(2, both, nullptr) == CANELE_OK && came == expected, "a message", number);
  }
  return canele_session_close(session) == CANELE_OK && well;
}

bool traffic(int engines) {
  const std::vector<canele_engine_t*> all = make_all(engines);
  const bool well = by_threads(engines, [&](int i) { return ring(all[static_cast<std::size_t>(i)], i); });
  return end_all(all) && well;
}

/// MPI has an engine of its own; the main thread uses it while the threads use theirs.
bool beside_mpi(int engines) {
  int got = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &got) != MPI_SUCCESS) std::exit(refused);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::vector<canele_engine_t*> all = make_all(engines);
  bool well = true;
  std::thread others(
      [&] { well = by_threads(engines, [&](int i) { return ring(all[static_cast<std::size_t>(i)], i); }); });
  bool sums = true;
  for (int turn = 0; turn < 100; ++turn) {
    int mine = rank + turn, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sums = sums && sum == size * (size - 1) / 2 + size * turn;
  }
  others.join();
  well = end_all(all) && right(sums, "a sum of MPI", engines) && well;
  MPI_Finalize();
  return well;
}

// ---- cost -----------------------------------------------------------------------------------------------------------

struct Cost {
  long kib = 0, threads = 0, descriptors = 0;
};

long entries(const char* directory) {
  long count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

/// Returns the resident memory in KiB, with this process's share of the pages that it shares with others.
long resident_kib() {
  long kib = 0;
  char line[256];
  std::FILE* file = std::fopen("/proc/self/smaps_rollup", "r");
  if (file == nullptr) return 0;
  while (std::fgets(line, sizeof line, file) != nullptr && std::sscanf(line, "Pss: %ld kB", &kib) != 1) {
  }
  static_cast<void>(std::fclose(file));
  return kib;
}

Cost cost_now() { return {resident_kib(), entries("/proc/self/task"), entries("/proc/self/fd")}; }

/// Prints what one more engine costs: the mean of those after the first, which have all sent to a peer.
bool cost(int engines) {
  canele_engine_t* first = make();
  bool well = ring(first, 0);
  const Cost before = cost_now();
  const std::vector<canele_engine_t*> all = make_all(engines);
  for (int i = 0; i < engines; ++i) well = ring(all[static_cast<std::size_t>(i)], i + 1) && well;
  const Cost after = cost_now();
  const double n = engines;
  if (canele_rank(first) == 0) {
    std::printf("one engine: %.0f KiB of memory, %.1f threads, %.1f descriptors\n",
                static_cast<double>(after.kib - before.kib) / n,
                static_cast<double>(after.threads - before.threads) / n,
                static_cast<double>(after.descriptors - before.descriptors) / n);
  }
  return end_all(all) && canele_finalize(first) == CANELE_OK && well;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string how = words[1];
  const int number = std::atoi(words[2]);
  bool well = false;
  if (how == "values") well = values(number);
  if (how == "death") well = death(number);
  if (how == "abandoned") well = abandoned(number);
  if (how == "traffic") well = traffic(number);
  if (how == "beside-mpi") well = beside_mpi(number);
  if (how == "cost") well = cost(number);
  return well ? 0 : 1;
}
