// SPDX-License-Identifier: BSD-3-Clause
//
// Multicasts of device memory, to ranks whose buffers are in either memory.
#include <numeric>
#include <vector>

#include "tests/gpu/job.hpp"

namespace canele::gpu_test {
namespace {

struct Options {
  canele_multicast_options_t all{};
  std::vector<int> outcomes;

  Options(int shape, std::size_t count) : outcomes(count, 77) {
    all.struct_size = sizeof all;
    all.shape = shape;
    all.outcomes = outcomes.data();
  }
};

/// The ranks other than the root.
std::vector<int> others(const Job& job, int root) {
  std::vector<int> ranks;
  for (int rank = 0; rank < job.size; ++rank) {
    if (rank != root) ranks.push_back(rank);
  }
  return ranks;
}

/// One message to all ranks. Those with an odd number receive in host memory.
void send_to_all(const Job& job, int root, bool from_device, std::size_t length, int shape, std::uint64_t tag) {
  const std::string bytes = pattern(length, static_cast<unsigned>(tag));
  Buffer buffer(job.rank == root ? from_device : job.rank % 2 == 0, length);
  canele_request_t request{};
  if (job.rank != root) {
    MUST(canele_irecv(job.session, root, tag, CANELE_TAG_EXACT, buffer.data(), length, &request));
    EXPECT(canele_wait(&request, nullptr) == CANELE_OK && buffer.read() == bytes);
    return;
  }
  buffer.write(bytes);
  const std::vector<int> ranks = others(job, root);
  Options options(shape, ranks.size());
  const canele_data_t data = canele_data_contiguous(buffer.data(), length);
  MUST(canele_imulticast(job.session, ranks.data(), ranks.size(), tag, &data, &options.all, &request));
  EXPECT(canele_wait(&request, nullptr) == CANELE_OK);
  EXPECT(options.outcomes == std::vector<int>(ranks.size(), CANELE_OK));
  EXPECT(buffer.read() == bytes);
}

void sizes_and_shapes(const Job& job) {
  std::uint64_t tag = 1;
  for (const std::size_t length : {0, 1, 48, 5000, 70'000, 1'000'003}) {
    for (const int shape : {CANELE_SHAPE_AUTO, CANELE_SHAPE_FLAT, CANELE_SHAPE_CHAIN, CANELE_SHAPE_BINOMIAL}) {
      for (int root = 0; root < 2; ++root) {
        send_to_all(job, root, true, length, shape, tag++);
        send_to_all(job, root, false, length, shape, tag++);
      }
    }
  }
}

/// A multicast keeps its place among sends of its tag, whatever is copied first.
void order(const Job& job) {
  constexpr std::uint64_t tag = 1000;
  constexpr int count = 12;
  job.barrier();
  if (job.rank == 0) {
    const std::vector<int> ranks = others(job, 0);
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<canele_request_t> requests;
    requests.reserve(count * ranks.size());
    for (int i = 0; i < count; ++i) {
      const std::size_t length = i % 3 == 0 ? 60'000 : 100;
      buffers.push_back(std::make_unique<Buffer>(i % 2 == 0, pattern(length, static_cast<unsigned>(i))));
      const canele_data_t data = canele_data_contiguous(buffers.back()->data(), length);
      if (i % 4 < 2) {
        requests.emplace_back();
        MUST(canele_imulticast(job.session, ranks.data(), ranks.size(), tag, &data, nullptr, &requests.back()));
        continue;
      }
      for (const int rank : ranks) {
        requests.emplace_back();
        MUST(canele_isend(job.session, rank, tag, buffers.back()->data(), length, &requests.back()));
      }
    }
    for (canele_request_t& request : requests) EXPECT(canele_wait(&request, nullptr) == CANELE_OK);
    return;
  }
  for (int i = 0; i < count; ++i) {
    Buffer buffer(i % 5 == 0, std::size_t{60'000});
    canele_request_t request{};
    canele_status_t status{};
    MUST(canele_irecv(job.session, 0, tag, CANELE_TAG_EXACT, buffer.data(), 60'000, &request));
    EXPECT(canele_wait(&request, &status) == CANELE_OK);
    const std::size_t length = i % 3 == 0 ? 60'000 : 100;
    EXPECT(status.length == length && buffer.read().substr(0, length) == pattern(length, static_cast<unsigned>(i)));
  }
}

/// A device that fails ends the multicast only; its receives stay posted, and get the next message.
void device_error(const Job& job) {
  job.barrier();
  if (job.rank == 0) {
    const std::vector<int> ranks = others(job, 0);
    Options options(CANELE_SHAPE_AUTO, ranks.size());
    Buffer buffer(true, pattern(9000, 5));
    const canele_data_t data = canele_data_contiguous(buffer.data(), 9000);
    canele_request_t request{};
    driver().fakeCudaFail("cuMemcpyAsync", 0, launch_failed, 0);
    MUST(canele_imulticast(job.session, ranks.data(), ranks.size(), 2000, &data, &options.all, &request));
    EXPECT(canele_wait(&request, nullptr) == CANELE_EDEVICE);
    EXPECT(options.outcomes == std::vector<int>(ranks.size(), CANELE_EDEVICE));
  }
  send_to_all(job, 0, true, 9000, CANELE_SHAPE_AUTO, 2000);
}

int run() {
  Job job;
  sizes_and_shapes(job);
  order(job);
  device_error(job);
  job.barrier();
  return job.end();
}

}  // namespace
}  // namespace canele::gpu_test

int main() { return canele::gpu_test::run(); }
