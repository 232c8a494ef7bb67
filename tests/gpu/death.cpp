// SPDX-License-Identifier: BSD-3-Clause
//
// A rank is killed while messages from device to device, and staged ones, are under way.
//
// Run by death_test.py, under canele-run --keep-going. Arguments: the rank that dies, a seed. The copies of the fake
// driver are slow (FAKE_CUDA_DELAY_US), so the rank often dies within one.
#include <chrono>
#include <csignal>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/gpu/job.hpp"

namespace canele::gpu_test {
namespace {

constexpr int rounds = 40;

/// One message each way between this rank and a peer. Both draw the same lengths.
struct Exchange {
  Exchange(const Job& job, int to, unsigned seed) : peer(to) {
    std::mt19937 dice(seed + static_cast<unsigned>(job.rank * job.size + to) * 1000);
    std::mt19937 other(seed + static_cast<unsigned>(to * job.size + job.rank) * 1000);
    bytes = pattern(length_of(dice), dice());
    wanted = pattern(length_of(other), other());
    from = std::make_unique<Buffer>(dice() % 4 != 0, bytes);
    into = std::make_unique<Buffer>(dice() % 4 != 0, wanted.size());
  }
  static std::size_t length_of(std::mt19937& dice) { return 1 + dice() % (dice() % 3 == 0 ? 3000 : 200'000); }

  int peer;
  std::string bytes, wanted;
  std::unique_ptr<Buffer> from, into;
  canele_request_t send{}, receive{};
};

/// One round with all peers that live. Those that are found dead are added to `dead`.
void exchange_with_all(const Job& job, unsigned seed, std::set<int>& dead) {
  std::vector<std::unique_ptr<Exchange>> all;
  for (int peer = 0; peer < job.size; ++peer) {
    if (peer == job.rank || dead.contains(peer)) continue;
    auto one = std::make_unique<Exchange>(job, peer, seed);
    const std::size_t room = one->wanted.size();
    MUST(canele_irecv(job.session, peer, seed, CANELE_TAG_EXACT, one->into->data(), room, &one->receive));
    MUST(canele_isend(job.session, peer, seed, one->from->data(), one->bytes.size(), &one->send));
    all.push_back(std::move(one));
  }
  for (const auto& one : all) {
    const int received = canele_wait(&one->receive, nullptr), sent = canele_wait(&one->send, nullptr);
    EXPECT(received == CANELE_OK || received == CANELE_EPEER);
    EXPECT(sent == CANELE_OK || sent == CANELE_EPEER);
    if (received == CANELE_OK) EXPECT(one->into->read() == one->wanted);
    if (received != CANELE_OK || sent != CANELE_OK) dead.insert(one->peer);
  }
}

int run(int argc, char** argv) {
  if (argc != 3) return 2;
  const int victim = std::atoi(argv[1]);
  const auto seed = static_cast<unsigned>(std::atoi(argv[2]));
  const Job job;
  job.barrier();
  std::thread killer;
  if (job.rank == victim) {
    killer = std::thread([seed] {
      std::this_thread::sleep_for(std::chrono::microseconds(std::mt19937(seed)() % 60'000));
      raise(SIGKILL);
    });
  }
  std::set<int> dead;
  for (unsigned round = 0; round < rounds || job.rank == victim; ++round) {
    exchange_with_all(job, seed * rounds + round, dead);
    EXPECT(dead.empty() || dead == std::set{victim});
  }
  EXPECT(canele_session_close(job.session) == CANELE_OK);
  const int code = canele_finalize(job.engine);
  EXPECT(code == CANELE_OK || code == CANELE_EPEER);
  const int failed = end_checks(job.rank);
  if (failed == 0) std::printf("rank %d: passed\n", job.rank);
  return failed;
}

}  // namespace
}  // namespace canele::gpu_test

int main(int argc, char** argv) { return canele::gpu_test::run(argc, argv); }
