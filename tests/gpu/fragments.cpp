// SPDX-License-Identifier: BSD-3-Clause
//
// Long staged messages, which go in fragments: what one end copies, sends and copies again at the same time, and what
// happens if a device fails half-way. Two ranks; a fragment is 4 KiB.
#include <string>
#include <vector>

#include "tests/gpu/exchange.hpp"

namespace canele::gpu_test {
namespace {

constexpr std::size_t fragment = 4096, count = 16, length = count * fragment;
constexpr std::uint64_t go_on_tag = 90;

/// Posts the receive, then the send; `mid_way` runs on each rank between the posts and the waits.
template <typename MidWay>
void one_message(bool to_device, std::uint64_t tag, int send_code, int receive_code, MidWay mid_way) {
  const std::string bytes = pattern(length, static_cast<unsigned>(tag));
  Buffer from(true, sends() ? bytes : std::string()), to(to_device, receives() ? length : 0);
  canele_request_t send{}, receive{};
  if (receives()) MUST(canele_irecv(job->session, job->peer, tag, CANELE_TAG_EXACT, to.data(), length, &receive));
  job->barrier();
  mid_way(to, [&] {
    if (sends()) MUST(canele_isend(job->session, job->peer, tag, from.data(), length, &send));
  });
  if (sends()) EXPECT(wait(send) == send_code);
  if (receives()) {
    EXPECT(wait(receive) == receive_code);
    if (receive_code == CANELE_OK) EXPECT(to.read() == bytes);
  }
}

/// Makes rank 1 tell rank 0 that it has seen the beginning of the message. Rank 0 lets the copies go on only then.
void tell_to_go_on() {
  canele_request_t told{};
  MUST(canele_isend(job->session, job->peer, go_on_tag, nullptr, 0, &told));
  MUST(wait(told));
}
void wait_to_go_on() {
  canele_request_t told{};
  MUST(canele_irecv(job->session, job->peer, go_on_tag, CANELE_TAG_EXACT, nullptr, 0, &told));
  MUST(wait(told));
  driver().fakeCudaHold(0);
}

/// Returns whether a buffer in host memory, which the engine writes meanwhile, begins so.
[[gnu::no_sanitize("thread")]] bool begins_with(const volatile char* bytes, const char* wanted, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != wanted[i]) return false;
  }
  return true;
}

/// Sends a message whose first `held_after` fragments have to arrive before the sender's device copies the rest.
/// to_device: the receiver's device has to copy what has arrived, too.
void one_held_message(bool to_device, std::uint64_t tag, int held_after, int code) {
  const std::uint64_t before = calls_of("cuMemcpyAsync");
  const std::string beginning = pattern(length, static_cast<unsigned>(tag)).substr(0, 2 * fragment);
  one_message(to_device, tag, code, code, [&](Buffer& to, auto post) {
    if (sends()) {
      driver().fakeCudaHold(1 + held_after);
      post();
      return wait_to_go_on();
    }
    const auto has_come = [&] {
      if (to_device) return calls_of("cuMemcpyAsync") != before;
      return begins_with(static_cast<char*>(to.data()), beginning.data(), beginning.size());
    };
    while (!has_come()) canele_progress(job->engine);
    tell_to_go_on();
  });
}

void both_ends_overlap() {
  one_held_message(false, 1, 3, CANELE_OK);
  one_held_message(true, 2, count / 2, CANELE_OK);
  EXPECT(counted("device_messages") == (sends() ? 2 : 1));
  EXPECT(counted("device_bytes_staged") == (sends() ? 2 : 1) * length);
}

/// A device that fails half-way ends both ends of the message, and no other one.
void sender_fails() {
  for (const bool to_device : {false, true}) {
    for (const int good : {4, 9, static_cast<int>(count) - 1}) {
      const std::uint64_t tag = 10 + static_cast<std::uint64_t>(good) + (to_device ? 50 : 0);
      if (sends()) driver().fakeCudaFail("cuMemcpyAsync", good, launch_failed, 0);
      one_held_message(to_device, tag, 3, CANELE_EDEVICE);
      exchange(When::expected, true, to_device, length, length, static_cast<unsigned>(tag) + 1000);
    }
  }
}

void receiver_fails() {
  one_message(true, 3, CANELE_OK, CANELE_EDEVICE, [](Buffer&, auto post) {
    if (receives()) driver().fakeCudaFail("cuMemcpyAsync", 0, illegal_address, 0);  // may be the only one
    job->barrier();
    post();
  });
  driver().fakeCudaFail(nullptr, 0, success, 0);
  exchange(When::unexpected, true, true, length, length, 2000);
}

/// Several at once, of one tag: each in its order.
void several() {
  constexpr unsigned most = 6;
  std::vector<Buffer> out, in;
  for (unsigned i = 0; i < most; ++i) {
    out.emplace_back(true, pattern(length + i, i));
    in.emplace_back(i % 2 == 0, length + i);
  }
  canele_request_t send[most]{}, receive[most]{};
  for (unsigned i = 0; i < most; ++i)
    MUST(canele_irecv(job->session, job->peer, 5, CANELE_TAG_EXACT, in[i].data(), length + i, &receive[i]));
  for (unsigned i = 0; i < most; ++i)
    MUST(canele_isend(job->session, job->peer, 5, out[i].data(), length + i, &send[i]));
  for (unsigned i = 0; i < most; ++i) {
    EXPECT(wait(receive[i]) == CANELE_OK && in[i].read() == pattern(length + i, i));
    EXPECT(wait(send[i]) == CANELE_OK);
  }
}

int run() {
  static Job made;
  job = &made;
  both_ends_overlap();
  sender_fails();
  receiver_fails();
  several();
  job->barrier();
  return made.end();
}

}  // namespace
}  // namespace canele::gpu_test

int main() { return canele::gpu_test::run(); }
