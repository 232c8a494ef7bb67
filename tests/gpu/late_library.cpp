// SPDX-License-Identifier: BSD-3-Clause
//
// A program whose engine begins before the library of the device is loaded. Threads then open sessions at the same
// time, and each sends device memory through its own.
#include <barrier>
#include <thread>
#include <vector>

#include "tests/gpu/job.hpp"

namespace canele::gpu_test {
namespace {

constexpr int threads = 4;
constexpr std::size_t length = 5000;

/// Opens a session, and sends a message of device memory to this rank itself.
void send_to_self(canele_engine_t* engine, int number, std::barrier<>& start) {
  use_device(0);
  const std::string bytes(length, static_cast<char>('a' + number));
  Buffer from(true, bytes), to(true, length);
  const std::string label = "late " + std::to_string(number);
  canele_session_t* session = nullptr;
  start.arrive_and_wait();
  MUST(canele_session_open(engine, label.c_str(), CANELE_ORDER_PER_TAG, &session));
  canele_request_t send{}, receive{};
  MUST(canele_irecv(session, 0, 1, CANELE_TAG_EXACT, to.data(), length, &receive));
  MUST(canele_isend(session, 0, 1, from.data(), length, &send));
  MUST(canele_wait(&send, nullptr));
  MUST(canele_wait(&receive, nullptr));
  EXPECT(to.read() == bytes);
  MUST(canele_session_close(session));
}

int run() {
  canele_engine_t* engine = nullptr;
  canele_session_t* session = nullptr;
  MUST(canele_init(nullptr, &engine));
  MUST(canele_session_open(engine, "before", CANELE_ORDER_PER_TAG, &session));
  MUST(canele_session_close(session));
  EXPECT(canele_device_support(engine, CANELE_MEMORY_CUDA) == 0);
  use_device(0);  // loads the library
  std::barrier<> start(threads);
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([&, i] { send_to_self(engine, i, start); });
  for (std::thread& one : all) one.join();
  EXPECT(canele_device_support(engine, CANELE_MEMORY_CUDA) == 1);
  MUST(canele_finalize(engine));
  return end_checks(0);
}

}  // namespace
}  // namespace canele::gpu_test

int main() { return canele::gpu_test::run(); }
