// SPDX-License-Identifier: BSD-3-Clause
//
// One message between two ranks, or of a rank with itself, whatever the memory and the order of its posts.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/gpu/job.hpp"

namespace canele::gpu_test {

inline Job* job = nullptr;
inline bool direct = false;  ///< large messages go from device to device
inline bool sends() { return job->size == 1 || job->rank == 0; }
inline bool receives() { return job->size == 1 || job->rank == 1; }

/// Returns how often the driver was called so, in this process.
inline std::uint64_t calls_of(const char* function) {
  std::uint64_t calls = 0;
  driver().fakeCudaCalls(function, &calls);
  return calls;
}

/// Returns a counter of this rank's engine.
inline std::uint64_t counted(const char* name) {
  std::uint64_t value = 0;
  for (int i = 0; i < canele_counter_count(); ++i) {
    if (std::strcmp(canele_counter_name(i), name) == 0) MUST(canele_counter_read(job->engine, i, -1, nullptr, &value));
  }
  return value;
}

inline int wait(canele_request_t& request, canele_status_t* status = nullptr) { return canele_wait(&request, status); }

enum class When { expected, unexpected, late, synchronous };

/// One message of `length` bytes, into a buffer of `room` bytes.
inline void exchange(When when, bool from_device, bool to_device, std::size_t length, std::size_t room, unsigned seed) {
  const std::uint64_t tag = seed;
  const std::string bytes = pattern(length, seed);
  Buffer from(from_device, bytes), to(to_device, room);
  canele_request_t send{}, receive{};
  const canele_data_t into = canele_data_contiguous(to.data(), room);
  const auto post = [&] {
    if (when == When::late) {
      MUST(canele_irecv_late(job->session, job->peer, tag, CANELE_TAG_EXACT, &receive));
    } else {
      MUST(canele_irecv(job->session, job->peer, tag, CANELE_TAG_EXACT, to.data(), room, &receive));
    }
  };
  if (receives() && when != When::unexpected) post();
  if (when != When::late) job->barrier();
  if (sends()) {
    canele_send_options_t options{};
    options.struct_size = sizeof options;
    options.flags = when == When::synchronous ? CANELE_SEND_SYNCHRONOUS : 0;
    const canele_data_t data = canele_data_contiguous(from.data(), length);
    MUST(canele_isend_data(job->session, job->peer, tag, &data, &options, &send));
  }
  if (receives() && when == When::unexpected) {
    int found = 0;
    while (found == 0) MUST(canele_iprobe(job->session, job->peer, tag, CANELE_TAG_EXACT, &found, nullptr));
    post();
  }
  if (receives() && when == When::late) {
    canele_status_t envelope;
    while (canele_receive_envelope(&receive, &envelope) != CANELE_OK) canele_progress(job->engine);
    EXPECT(envelope.length == length);
    MUST(canele_receive_bind(&receive, &into));
  }
  if (receives()) {
    canele_status_t status{};
    const int code = wait(receive, &status);
    EXPECT(code == (length > room ? CANELE_ETRUNC : CANELE_OK));
    EXPECT(status.length == length);
    std::string wanted(room, '\xee');
    wanted.replace(0, std::min(length, room), bytes, 0, std::min(length, room));
    if (!EXPECT(to.read() == wanted))
      std::fprintf(stderr, "  %zu bytes into %zu, %d -> %d, when %d\n", length, room, from_device, to_device,
                   static_cast<int>(when));
  }
  if (sends()) EXPECT(wait(send) == CANELE_OK);
  if (sends()) EXPECT(from.read() == bytes);
}

/// After a message that had to be staged, the next ones are, too. Sends so many.
inline void end_of_staging() {
  if (!direct) return;
  for (unsigned i = 0; i < 64; ++i) exchange(When::expected, true, true, 20'000, 20'000, 900 + i);
}

}  // namespace canele::gpu_test
