// SPDX-License-Identifier: BSD-3-Clause
//
// A multicast along a chain of three ranks, whose middle one dies after so many steps. The last rank receives the data
// nevertheless, and the root is told which rank has not.
//
// Run by cut_test.py, under canele-run --keep-going. Arguments: the steps, bytes of the message. One thread, which
// makes all progress itself.
//
// A step of the middle rank is anything that a call of canele_progress() did. So the test can cut at each step, or soon
// after it. Exit code 9: a rank saw something wrong; stderr says what.
#include <canele/canele.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int root = 0, middle = 1, last = 2, ranks = 3;
constexpr std::uint64_t hello = 1, tile = 2, done = 3;

[[noreturn]] void wrong(const char* format, ...) {
  std::va_list list;
  va_start(list, format);
  std::vfprintf(stderr, format, list);
  va_end(list);
  std::fputc('\n', stderr);
  std::_Exit(9);
}

void must(int code, const char* what) {
  if (code != CANELE_OK) wrong("%s: %s: %s", what, canele_error_string(code), canele_error_detail());
}

unsigned char byte_at(std::size_t at) { return static_cast<unsigned char>((at * 40503u + (at >> 8)) >> 3); }

class Rank {
 public:
  Rank(long steps, std::size_t size) : steps_(steps), data_(size) {
    must(canele_init(nullptr, &engine_), "canele_init");
    must(canele_session_open(engine_, "cut", CANELE_ORDER_PER_TAG, &session_), "canele_session_open");
    rank_ = canele_rank(engine_);
    if (canele_size(engine_) != ranks) wrong("%d ranks are needed", ranks);
  }

  void run() {
    meet();
    if (rank_ == root) be_root();
    if (rank_ == middle) be_middle();
    if (rank_ == last) be_last();
    const int code = canele_finalize(engine_);
    if (code != CANELE_OK && (rank_ == middle || code != CANELE_EPEER)) must(code, "canele_finalize");
  }

 private:
  /// Connects every rank with every other.
  void meet() {
    for (int other = 0; other < ranks; ++other) {
      canele_request_t send{}, receive{};
      if (other == rank_) continue;
      must(canele_irecv(session_, other, hello, CANELE_TAG_EXACT, nullptr, 0, &receive), "canele_irecv");
      must(canele_isend(session_, other, hello, nullptr, 0, &send), "canele_isend");
      must(canele_wait(&receive, nullptr), "the first message");
      must(canele_wait(&send, nullptr), "the first message");
    }
  }

  void be_root() {
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = byte_at(i);
    const int destinations[] = {middle, last};
    int outcomes[] = {1, 1};
    canele_multicast_options_t options{};
    options.struct_size = sizeof options;
    options.shape = CANELE_SHAPE_CHAIN;
    options.outcomes = outcomes;
    const canele_data_t data = canele_data_contiguous(data_.data(), data_.size());
    canele_request_t request{};
    must(canele_imulticast(session_, destinations, 2, tile, &data, &options, &request), "canele_imulticast");
    const int code = canele_wait(&request, nullptr);
    const int lost = outcomes[0];
    if (outcomes[1] != CANELE_OK) wrong("the root was told that the last rank has nothing: %d", outcomes[1]);
    if (lost != CANELE_OK && lost != CANELE_EPEER) wrong("the root was told of the middle rank: %d", lost);
    if (code != lost) wrong("the multicast ended with %d, the middle rank with %d", code, lost);
    std::printf("root: the middle rank %s\n", lost == CANELE_OK ? "has it" : "is lost");
  }

  void be_middle() {
    canele_request_t receive{}, end{};
    must(canele_irecv(session_, root, tile, CANELE_TAG_EXACT, data_.data(), data_.size(), &receive), "canele_irecv");
    must(canele_irecv(session_, last, done, CANELE_TAG_EXACT, nullptr, 0, &end), "canele_irecv");
    bool over = false;  // canele_test() would make progress that is not counted
    const auto ended = [](canele_request_t*, unsigned, void* flag) { *static_cast<bool*>(flag) = true; };
    must(canele_request_on_event(&end, CANELE_EVENT_FINALIZED, ended, &over), "canele_request_on_event");
    long taken = 0;
    while (!over) {
      if (taken >= steps_) kill(getpid(), SIGKILL);
      taken += canele_progress(engine_);
    }
    must(canele_wait(&receive, nullptr), "the middle rank's receive");
    check();
    std::printf("middle: lives after %ld steps\n", taken);
  }

  void be_last() {
    canele_request_t receive{}, send{};
    must(canele_irecv(session_, root, tile, CANELE_TAG_EXACT, data_.data(), data_.size(), &receive), "canele_irecv");
    must(canele_wait(&receive, nullptr), "the last rank's receive");
    check();
    std::printf("last: has it\n");
    must(canele_isend(session_, middle, done, nullptr, 0, &send), "canele_isend");
    const int code = canele_wait(&send, nullptr);
    if (code != CANELE_EPEER) must(code, "word to the middle rank");
  }

  void check() const {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      if (data_[i] != byte_at(i)) wrong("rank %d has a wrong byte at %zu", rank_, i);
    }
  }

  const long steps_;
  std::vector<unsigned char> data_;
  canele_engine_t* engine_ = nullptr;
  canele_session_t* session_ = nullptr;
  int rank_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) wrong("usage: process_cut STEPS BYTES");
  Rank(std::atol(argv[1]), static_cast<std::size_t>(std::atol(argv[2]))).run();
  return 0;
}
