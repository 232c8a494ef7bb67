// SPDX-License-Identifier: BSD-3-Clause
//
// A rank for the tests in network name spaces: exchanges checked messages with all others while the test harms the
// network.
//
//     netns_rank exchange ROUNDS    every rank with every other, so many times
//     netns_rank until-stop         such exchanges until rank 0 reads a line on its input; rank 0 prints each round
//     netns_rank killed RANK        RANK kills itself while the others wait for it; a round without it
//     netns_rank gone RANK          one round, "connected", then requests to and from RANK, which the test cuts off;
//                                   a round without it
//
// Run by netns_test.py, under canele-run --netns, and by launchers_test.py, under canele-run --pmi1. One thread, and
// those that CANELE_WORKER asks for. Exit code 9 means that a message was wrong or a request ended as it must not; the
// text says which.
#include <canele/canele.h>
#include <poll.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

// Sizes that drivers treat differently: nothing, inline, eager, rendezvous in several pieces.
constexpr std::size_t sizes[] = {8, 0, 1, 1000, 20'000, 300'000};
constexpr std::uint64_t tag_of_cut = 1'000'000, tag_of_announced = 2'000'000;
constexpr std::size_t long_message = 4'000'000;  // does not fit into the kernel's buffers: its end needs the peer

[[noreturn]] void wrong(const std::string& what) {
  std::fprintf(stderr, "netns_rank: %s\n", what.c_str());
  std::_Exit(9);
}

void check(int code, const char* call) {
  if (code != CANELE_OK) wrong(std::string(call) + ": " + canele_error_string(code) + ": " + canele_error_detail());
}

/// Returns bytes that differ for each pair, round and size.
Bytes pattern(int from, int to, std::uint64_t round, std::size_t size) {
  Bytes bytes(size);
  std::uint64_t state = (round * 64 + static_cast<std::uint64_t>(from)) * 64 + static_cast<std::uint64_t>(to) + size;
  for (unsigned char& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<unsigned char>(state >> 56);
  }
  return bytes;
}

struct Job {
  canele_engine_t* engine = nullptr;
  canele_session_t* session = nullptr;
  int rank = 0, size = 0;
  bool last = false;  ///< rank 0 has been told to stop
};

struct Exchange {
  canele_request_t request = {};
  Bytes bytes;
  int peer = 0;
  bool receive = false;
};

/// Exchanges all sizes with every rank but `without`. The first message of rank 0 begins with "is it the last round?".
void play_round(Job& job, std::uint64_t round, int without) {
  std::deque<Exchange> all;  // requests must not move
  for (int peer = 0; peer < job.size; ++peer) {
    if (peer == job.rank || peer == without) continue;
    for (const bool receive : {true, false}) {
      for (std::size_t i = 0; i < std::size(sizes); ++i) {
        Exchange& one = all.emplace_back();
        one.peer = peer;
        one.receive = receive;
        const std::uint64_t tag = round * 16 + i;
        if (receive) {
          one.bytes.resize(sizes[i]);
          check(canele_irecv(job.session, peer, tag, CANELE_TAG_EXACT, one.bytes.data(), sizes[i], &one.request),
                "canele_irecv");
        } else {
          one.bytes = pattern(job.rank, peer, round, sizes[i]);
          if (i == 0) one.bytes[0] = job.last ? 1 : 0;
          check(canele_isend(job.session, peer, tag, one.bytes.data(), sizes[i], &one.request), "canele_isend");
        }
      }
    }
  }
  std::size_t number = 0;
  for (Exchange& one : all) {
    canele_status_t status;
    check(canele_wait(&one.request, &status), "canele_wait");
    const std::size_t size = sizes[number++ % std::size(sizes)];
    if (!one.receive) continue;
    Bytes expected = pattern(one.peer, job.rank, round, size);
    if (size == sizes[0]) {
      if (one.peer == 0 && one.bytes[0] == 1) job.last = true;
      expected[0] = one.bytes[0];
    }
    if (status.length != size || one.bytes != expected)
      wrong("round " + std::to_string(round) + ": " + std::to_string(size) + " bytes from rank " +
            std::to_string(one.peer) + " are not what it sent");
  }
}

int play(Job& job, std::uint64_t rounds) {
  for (std::uint64_t round = 0; round < rounds; ++round) play_round(job, round, -1);
  std::printf("rank %d: %d rounds right\n", job.rank, static_cast<int>(rounds));
  return 0;
}

int play_until_stop(Job& job) {
  std::uint64_t round = 0;
  for (bool over = false; !over; ++round) {
    pollfd input = {0, POLLIN, 0};
    if (job.rank == 0 && poll(&input, 1, 0) == 1) job.last = true;
    play_round(job, round, -1);
    over = job.last;
    if (job.rank != 0) continue;
    std::printf("round %d\n", static_cast<int>(round));
    std::fflush(stdout);
  }
  std::printf("rank %d: %d rounds right\n", job.rank, static_cast<int>(round));
  return 0;
}

/// Waits for a request that cannot succeed; it must end with an error that names `gone`.
void expect_loss(const Job& job, canele_request_t& request, const char* what, int gone, std::uint64_t since) {
  canele_status_t status;
  if (canele_wait(&request, &status) == CANELE_OK)
    wrong(std::string(what) + " ended well, though rank " + std::to_string(gone) + " is gone");
  if (status.error != CANELE_EPEER || status.source != gone)
    wrong(std::string(what) + " ended with '" + canele_error_string(status.error) + "' of rank " +
          std::to_string(status.source) + ", not with the loss of rank " + std::to_string(gone));
  std::printf("rank %d: %s rank %d: lost after %.1f s\n", job.rank, what, gone,
              static_cast<double>(canele_now(job.engine) - since) / 1e9);
}

/// Rank `odd` dies before any rank has connected to it. The others sleep in their receives by then.
int lose_killed(Job& job, int odd) {
  const std::uint64_t since = canele_now(job.engine);
  canele_request_t request = {};
  std::uint64_t word = 0;
  if (job.rank == odd) std::raise(SIGKILL);
  check(canele_irecv(job.session, odd, tag_of_cut, CANELE_TAG_EXACT, &word, sizeof word, &request), "canele_irecv");
  expect_loss(job, request, "receive from", odd, since);
  play_round(job, 1, odd);
  std::printf("rank %d: goes on without rank %d\n", job.rank, odd);
  return 0;
}

/// The requests that are lost between the odd rank and another one.
struct Pair {
  canele_request_t receive = {}, send = {}, announced = {};
  Bytes in = Bytes(8), out = Bytes(long_message), far = Bytes(long_message);
  int peer = 0;
};

/// Starts the requests before the cut. The odd rank then sends no more: its connections are idle, which is another way
/// to find the loss. What it has announced is fetched when it is gone.
void begin_pair(const Job& job, Pair& pair, int odd) {
  check(
      canele_irecv(job.session, pair.peer, tag_of_cut, CANELE_TAG_EXACT, pair.in.data(), pair.in.size(), &pair.receive),
      "canele_irecv");
  std::uint64_t word = 0;
  canele_request_t request = {};
  if (job.rank == odd) {
    check(canele_isend(job.session, pair.peer, tag_of_announced, pair.far.data(), pair.far.size(), &pair.announced),
          "canele_isend");
    check(canele_isend(job.session, pair.peer, tag_of_cut + 1, &word, sizeof word, &request), "canele_isend");
  } else {  // comes after the announcement
    check(canele_irecv(job.session, odd, tag_of_cut + 1, CANELE_TAG_EXACT, &word, sizeof word, &request),
          "canele_irecv");
  }
  check(canele_wait(&request, nullptr), "canele_wait");
}

/// Rank 0, which was told of the cut, tells the others; the odd rank receives nothing any more.
void spread_news(const Job& job, int odd) {
  std::uint64_t cut = 1;
  for (int peer = 0; peer < job.size; ++peer) {
    if (peer == odd || job.rank == odd) continue;
    canele_request_t request = {};
    if (job.rank == 0 && peer != 0) {
      check(canele_isend(job.session, peer, tag_of_cut + 1, &cut, sizeof cut, &request), "canele_isend");
      check(canele_wait(&request, nullptr), "canele_wait");
    } else if (job.rank != 0 && peer == 0) {
      check(canele_irecv(job.session, 0, tag_of_cut + 1, CANELE_TAG_EXACT, &cut, sizeof cut, &request), "canele_irecv");
      check(canele_wait(&request, nullptr), "canele_wait");
    }
  }
}

/// Rank `odd` loses all others, and the others lose it.
int lose(Job& job, int odd) {
  if (odd <= 0 || odd >= job.size) wrong("rank 0 hears of the cut: another one must be lost");
  play_round(job, 0, -1);
  std::deque<Pair> pairs;
  for (int peer = 0; peer < job.size; ++peer) {
    if (peer == job.rank || (job.rank != odd && peer != odd)) continue;
    Pair& pair = pairs.emplace_back();
    pair.peer = peer;
    begin_pair(job, pair, odd);
  }
  std::printf("connected\n");
  std::fflush(stdout);
  if (job.rank == 0 && std::getchar() == EOF) wrong("the test has not said that the network is cut");
  spread_news(job, odd);
  const std::uint64_t since = canele_now(job.engine);
  for (Pair& pair : pairs) {
    if (job.rank == odd) continue;
    check(canele_isend(job.session, pair.peer, tag_of_cut, pair.out.data(), pair.out.size(), &pair.send),
          "canele_isend");
    check(canele_irecv(job.session, pair.peer, tag_of_announced, CANELE_TAG_EXACT, pair.far.data(), pair.far.size(),
                       &pair.announced),
          "canele_irecv");
  }
  for (Pair& pair : pairs) {
    expect_loss(job, pair.receive, "receive from", pair.peer, since);
    if (job.rank != odd) expect_loss(job, pair.send, "send to", pair.peer, since);
    expect_loss(job, pair.announced, job.rank == odd ? "announced send to" : "fetch from", pair.peer, since);
  }
  if (job.rank == odd) return 0;
  play_round(job, 2, odd);
  std::printf("rank %d: goes on without rank %d\n", job.rank, odd);
  return 0;
}

int run(Job& job, const std::string& what, int number) {
  if (what == "exchange") return play(job, static_cast<std::uint64_t>(number));
  if (what == "until-stop") return play_until_stop(job);
  if (what == "killed") return lose_killed(job, number);
  if (what == "gone") return lose(job, number);
  wrong("unknown order: " + what);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) wrong("what shall I do?");
  Job job;
  check(canele_init(nullptr, &job.engine), "canele_init");
  check(canele_session_open(job.engine, "netns", CANELE_ORDER_PER_TAG, &job.session), "canele_session_open");
  job.rank = canele_rank(job.engine);
  job.size = canele_size(job.engine);
  const int code = run(job, words[1], count > 2 ? std::atoi(words[2]) : 0);
  check(canele_session_close(job.session), "canele_session_close");
  const int left = canele_finalize(job.engine);
  const bool all_here = std::strcmp(words[1], "gone") != 0 && std::strcmp(words[1], "killed") != 0;
  if (all_here) check(left, "canele_finalize");  // without the lost rank it may return an error
  return code;
}
