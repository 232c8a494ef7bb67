// SPDX-License-Identifier: BSD-3-Clause
//
// Two ranks, one of which hangs until the cause is removed; then the messages must be right.
//
// Run by hang_test.py, under canele-run -n 2. Argument: the cause; see the functions below. One thread in each rank,
// and the library's worker if it is asked for. The cause is removed only after the report: by the reporting rank
// itself, or by hang_test.py, which reads the report and continues the stopped rank. Without a report the test runs
// into its limit.
#include <canele/canele.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

constexpr std::uint64_t data_tag = 7, go_tag = 9;
constexpr std::size_t large = 1 << 20;

canele_engine_t* engine;
canele_session_t* session;
int rank;

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, canele_error_detail());
  std::_Exit(9);
}

void must(int code, const char* what) {
  if (code != CANELE_OK) wrong(what);
}

std::vector<unsigned char> pattern() {
  std::vector<unsigned char> bytes(large);
  for (std::size_t i = 0; i < large; ++i) bytes[i] = static_cast<unsigned char>(i * 31 + i / 256);
  return bytes;
}

void send(std::uint64_t tag, const std::vector<unsigned char>& data) {
  canele_request_t request{};
  must(canele_isend(session, 1 - rank, tag, data.data(), data.size(), &request), "isend");
  must(canele_wait(&request, nullptr), "wait for a send");
}

void receive(std::uint64_t tag, const std::vector<unsigned char>& expected) {
  std::vector<unsigned char> data(expected.size());
  canele_request_t request{};
  must(canele_irecv(session, 1 - rank, tag, CANELE_TAG_EXACT, data.data(), data.size(), &request), "irecv");
  must(canele_wait(&request, nullptr), "wait for a receive");
  if (data != expected) wrong("the data is wrong");
  std::printf("rank %d: data of tag %d right\n", rank, static_cast<int>(tag));
}

void meet() { must(canele_barrier(session), "barrier"); }

/// Stops the process until hang_test.py has read the other rank's report.
void stop() {
  std::printf("stopping %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  raise(SIGSTOP);
}

/// The host's callback: prints the report, and removes the cause by a message. It may do anything that does not block.
void on_report(canele_engine_t*, const char* report, void* go) {
  std::printf("callback: %s\n", report);
  std::fflush(stdout);
  must(canele_isend(session, 1, go_tag, nullptr, 0, static_cast<canele_request_t*>(go)), "isend in the callback");
}

/// A large message whose receive is posted only when its sender has reported.
void unposted() {
  meet();
  if (rank == 1) {
    receive(go_tag, {});
    receive(data_tag, pattern());
    return;
  }
  canele_request_t go{};
  must(canele_on_hang(engine, on_report, &go), "on_hang");
  send(data_tag, pattern());
  must(canele_wait(&go, nullptr), "wait for the callback's send");
}

/// A receive whose sender is stopped.
void stopped() {
  meet();
  if (rank == 0) return receive(data_tag, pattern());
  stop();
  send(data_tag, pattern());
}

/// A first message to a rank that is stopped before it has accepted a connection.
void connecting() {
  if (rank == 0) return send(data_tag, {1, 2, 3});
  stop();
  receive(data_tag, {1, 2, 3});
}

/// A rank without a worker or on-demand thread (CANELE_WORKER=none) that computes: it cannot report by itself, and is
/// asked.
void no_worker() {
  meet();
  if (rank == 1) {
    receive(go_tag, {});
    receive(data_tag, pattern());
    return;
  }
  const std::vector<unsigned char> data = pattern();
  canele_request_t request{};
  must(canele_isend(session, 1, data_tag, data.data(), data.size(), &request), "isend");
  std::string text(16 * 1024, '\0');
  do {
    const timespec a_moment{0, 50'000'000};
    nanosleep(&a_moment, nullptr);
    must(canele_report(engine, text.data(), text.size(), nullptr), "report");
  } while (std::strstr(text.c_str(), "no thread makes progress") == nullptr);
  std::printf("asked: %s\n", text.c_str());
  send(go_tag, {});
  must(canele_wait(&request, nullptr), "wait");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string cause = argc == 2 ? argv[1] : "";
  must(canele_init(nullptr, &engine), "init");
  must(canele_session_open(engine, "hang", CANELE_ORDER_PER_TAG, &session), "session");
  rank = canele_rank(engine);
  if (cause == "unposted") {
    unposted();
  } else if (cause == "stopped") {
    stopped();
  } else if (cause == "connecting") {
    connecting();
  } else if (cause == "nobody") {
    no_worker();
  } else {
    wrong("no such cause");
  }
  must(canele_session_close(session), "close");
  must(canele_finalize(engine), "finalize");
  std::printf("rank %d: done\n", rank);
  return 0;
}
