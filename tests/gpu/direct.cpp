// SPDX-License-Identifier: BSD-3-Clause
//
// Messages from device to device between two ranks, and those that have to be staged after all.
#include "tests/gpu/exchange.hpp"

namespace canele::gpu_test {
namespace {

/// One message from device to device, of which both ranks know what happens to it.
struct Direct {
  static constexpr std::size_t length = 20'000;

  Direct() : from(true, pattern(length, 11)), to(true, length) {}
  void post(std::uint64_t tag) {
    job->barrier();
    copies = calls_of("cuMemcpyAsync");
    if (receives()) MUST(canele_irecv(job->session, job->peer, tag, CANELE_TAG_EXACT, to.data(), length, &request));
    job->barrier();
    if (sends()) MUST(canele_isend(job->session, job->peer, tag, from.data(), length, &request));
  }
  void finish() {
    EXPECT(wait(request) == CANELE_OK);
    if (receives()) EXPECT(to.read() == pattern(length, 11));
  }
  /// Returns how many copies this rank has made since the post.
  std::uint64_t copies_made() const { return calls_of("cuMemcpyAsync") - copies; }

  Buffer from, to;
  canele_request_t request{};
  std::uint64_t copies = 0;
};

/// The receiver's device copies from the sender's memory, which is mapped once.
void from_device_to_device() {
  end_of_staging();
  Direct message;
  std::uint64_t mapped = 0;
  for (int i = 0; i < 3; ++i) {
    message.post(30);
    EXPECT(wait(message.request) == CANELE_OK);
    if (i == 0) mapped = calls_of("cuIpcOpenMemHandle_v2");
    EXPECT(calls_of("cuIpcOpenMemHandle_v2") == mapped);
    EXPECT(message.copies_made() == (sends() ? 0 : 1));
  }
  // The memory of tags that are in use is given back and allocated anew, more often than mappings are kept.
  for (unsigned i = 0; i < 80; ++i) {
    Direct other;
    other.post(31);
    other.finish();
  }
  if (receives()) EXPECT(calls_of("cuIpcCloseMemHandle") > 10);
}

/// What cannot go from device to device goes through host memory: the receiver says so when it has the message.
void through_host_after_all() {
  for (unsigned i = 0; i < 70; ++i) exchange(When::expected, true, false, 30'000 + i, 30'000 + i, 2000 + i);
  for (unsigned i = 0; i < 70; ++i) exchange(When::unexpected, true, true, 30'000 + i, 30'000 + i, 2100 + i);
  Direct refused;  // the copy fails
  if (receives()) driver().fakeCudaFail("cuMemcpyAsync", 0, launch_failed, 0);
  refused.post(32);
  refused.finish();
  end_of_staging();
}

/// The sender's device fails when the receiver wants a stream: both ends are told, and the next message arrives.
void fails_when_asked() {
  Buffer from(true, pattern(30'000, 12));
  std::string host(30'000, '\0');
  canele_request_t request{};
  job->barrier();
  if (sends()) driver().fakeCudaFail("cuMemcpyAsync", 0, launch_failed, 0);
  if (receives()) MUST(canele_irecv(job->session, job->peer, 33, CANELE_TAG_EXACT, host.data(), host.size(), &request));
  if (sends()) MUST(canele_isend(job->session, job->peer, 33, from.data(), host.size(), &request));
  EXPECT(wait(request) == CANELE_EDEVICE);
  if (receives()) MUST(canele_irecv(job->session, job->peer, 33, CANELE_TAG_EXACT, host.data(), host.size(), &request));
  if (sends()) MUST(canele_isend(job->session, job->peer, 33, from.data(), host.size(), &request));
  EXPECT(wait(request) == CANELE_OK);
  if (receives()) EXPECT(host == pattern(30'000, 12));
}

int run() {
  static Job made;
  job = &made;
  direct = true;
  from_device_to_device();
  if (receives()) EXPECT(counted("device_bytes_direct") != 0 && counted("device_gets_failed") == 0);
  through_host_after_all();
  if (receives()) EXPECT(counted("device_gets_failed") != 0);
  fails_when_asked();
  job->barrier();
  return made.end();
}

}  // namespace
}  // namespace canele::gpu_test

int main() { return canele::gpu_test::run(); }
