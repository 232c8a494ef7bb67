// SPDX-License-Identifier: BSD-3-Clause
//
// Operations without a completion whose target is lost: the next flush tells the error, once, whatever the operation
// and however far it had come.
//
// Three engines, driven by one thread: rank 0 accesses memory of rank 1, which is lost, and of rank 2, which is not.
// Each kind of operation has lanes of its own, because errors are kept for each lane.
#include <canele/one_sided.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/state/one_sided.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test::lost_target {
namespace {

constexpr int lost = 1, alive = 2, ranks = 3;
constexpr std::size_t window = 1 << 19, large = 300'000, steps = 200;

/// How far the operations have come when the target is lost.
enum class Stage {
  before_attach,  ///< nothing was sent to the target yet, and it does not know the key
  waiting,        ///< behind a large put of their lane
  limited,        ///< those with an answer wait, because another lane has as many as are allowed
  sent,           ///< the target does not look
  executed,       ///< and the origin does not know, unless the operation has an answer
  after_loss      ///< posted only then
};
enum class Loss { failed, destroyed };

struct Case {
  const char* driver;
  Stage stage;
  Loss loss;
};

/// A key, and the memory of the program for operations with it.
struct Access {
  canele_key_t* key;
  std::vector<std::uint8_t>* bytes;
  std::uint64_t* word;

  canele_data_t data(std::size_t length) const { return canele_data_contiguous(bytes->data(), length); }
};

int put(const Access& a, const canele_access_options_t& lane) {
  const canele_data_t data = a.data(8);
  return canele_put(a.key, 0, &data, &lane, nullptr);
}
int put_strided(const Access& a, const canele_access_options_t& lane) {
  const canele_data_t data = a.data(64);
  canele_access_options_t blocks = lane;
  blocks.block = 8;
  blocks.stride = 24;
  return canele_put(a.key, 0, &data, &blocks, nullptr);
}
int put_much(const Access& a, const canele_access_options_t& lane) {
  const canele_data_t data = a.data(large);
  return canele_put(a.key, 0, &data, &lane, nullptr);
}
int get(const Access& a, const canele_access_options_t& lane) {
  const canele_data_t data = a.data(8);
  return canele_get(a.key, 0, &data, &lane, nullptr);
}
int get_much(const Access& a, const canele_access_options_t& lane) {
  const canele_data_t data = a.data(large);
  return canele_get(a.key, 0, &data, &lane, nullptr);
}
int fetch_and_add(const Access& a, const canele_access_options_t& lane) {
  return canele_atomic(a.key, 0, CANELE_ATOMIC_ADD, sizeof *a.word, 1, 0, a.word, &lane, nullptr);
}
int accumulate(const Access& a, const canele_access_options_t& lane) {
  const canele_data_t data = a.data(64);
  return canele_accumulate(a.key, 0, &data, CANELE_SUM, CANELE_UINT64, nullptr, &lane, nullptr);
}
int fetch_and_accumulate(const Access& a, const canele_access_options_t& lane) {
  const canele_data_t data = a.data(8);
  return canele_accumulate(a.key, 0, &data, CANELE_SUM, CANELE_UINT64, a.word, &lane, nullptr);
}

/// How the origin learns that an operation is over.
enum class End { by_flush, by_message, by_answer };

struct Kind {
  const char* name;
  int (*post)(const Access&, const canele_access_options_t&);
  End end;
};
constexpr std::array kinds = {Kind{"put", put, End::by_flush},
                              Kind{"strided put", put_strided, End::by_flush},
                              Kind{"large put", put_much, End::by_message},
                              Kind{"get", get, End::by_answer},
                              Kind{"large get", get_much, End::by_answer},
                              Kind{"fetch-and-add", fetch_and_add, End::by_answer},
                              Kind{"accumulate", accumulate, End::by_flush},
                              Kind{"accumulate with a result", fetch_and_accumulate, End::by_answer}};

class OneSidedLostTarget : public testing::TestWithParam<Case> {
 protected:
  OneSidedLostTarget()
      : job_({ranks,
              {comm::find_driver("self"), comm::find_driver(GetParam().driver)},
              "aggregate",
              {"CANELE_VERBOSE=0", "CANELE_SHM_CMA=off"}}) {  // all operations go by packets
    for (const int rank : {lost, alive}) {
      const auto i = static_cast<std::size_t>(rank);
      memory_[i].resize(window);
      unsigned char key[CANELE_KEY_SIZE];
      EXPECT_EQ(canele_memory_register(job_.handle(rank), memory_[i].data(), window, nullptr, &registered_[i]),
                CANELE_OK);
      EXPECT_EQ(canele_memory_key(registered_[i], key), CANELE_OK);
      EXPECT_EQ(canele_key_open(job_.handle(0), key, &keys_[i]), CANELE_OK) << canele_error_detail();
    }
  }
  ~OneSidedLostTarget() override {
    for (canele_lane_t* const lane : lanes_) EXPECT_EQ(canele_lane_close(lane), CANELE_OK) << canele_error_detail();
    for (const int rank : {lost, alive}) {
      const auto i = static_cast<std::size_t>(rank);
      EXPECT_EQ(canele_key_close(keys_[i]), CANELE_OK) << canele_error_detail();
      if (rank == lost && GetParam().loss == Loss::destroyed) {
        delete reinterpret_cast<comm::one_sided::Region*>(registered_[i]);  // its engine is gone
      } else {
        EXPECT_EQ(canele_memory_free(registered_[i]), CANELE_OK);
      }
    }
  }

  canele_access_options_t in_new_lane() {
    lanes_.push_back(nullptr);
    EXPECT_EQ(canele_lane_open(job_.handle(0), &lanes_.back()), CANELE_OK);
    canele_access_options_t options{};
    options.struct_size = sizeof options;
    options.lane = lanes_.back();
    return options;
  }
  Access to(int rank) { return {keys_[static_cast<std::size_t>(rank)], &bytes_, &word_}; }
  int flush(int rank, const canele_access_options_t& lane) {
    canele_request_t request{};
    EXPECT_EQ(canele_flush(job_.handle(0), rank, &lane, &request), CANELE_OK) << canele_error_detail();
    EXPECT_TRUE(job_.finish(request));
    return status_of(request).error;
  }
  /// Flushes the lane to every rank. Returns how many of the flushes have told the loss. The last rank comes first:
  /// while its operations are under way, a flush to the lost rank is a request to it, which ends with the error in any
  /// case.
  int errors_of_all(const canele_access_options_t& lane) {
    int errors = 0;
    for (int rank = ranks - 1; rank >= 0; --rank) {
      const int error = flush(rank, lane);
      EXPECT_TRUE(error == CANELE_OK || error == CANELE_EPEER) << error;
      errors += error != CANELE_OK;
    }
    return errors;
  }

  /// Makes the targets known to the origin, and the keys to them.
  void attach(const canele_access_options_t& lane) {
    for (const int rank : {lost, alive}) {
      ASSERT_EQ(put(to(rank), lane), CANELE_OK);
      ASSERT_EQ(flush(rank, lane), CANELE_OK);
    }
  }
  bool is_waiting(const canele_access_options_t& lane) {
    const std::uint16_t number = reinterpret_cast<comm::one_sided::Lane*>(lane.lane)->number;
    return job_.engine(0).peer(lost).one_sided->stream(number).waiting.front() != nullptr;
  }
  /// The completion of an operation that others wait for.
  canele_request_t* ahead() {
    ahead_.push_back(std::make_unique<canele_request_t>());
    return ahead_.back().get();
  }
  void await_as_many_answers_as_allowed(const canele_access_options_t& lane) {
    const canele_data_t data = to(lost).data(8);
    for (std::uint32_t i = 0; i < comm::one_sided::most_replies; ++i)
      ASSERT_EQ(canele_get(to(lost).key, 0, &data, &lane, ahead()), CANELE_OK);
  }
  /// Posts an operation of a lane, and brings it to the stage of the test.
  void post(const Kind& kind, const canele_access_options_t& lane) {
    SCOPED_TRACE(kind.name);
    const Stage stage = GetParam().stage;
    if (stage == Stage::waiting) {
      const canele_data_t data = to(lost).data(large);
      ASSERT_EQ(canele_put(to(lost).key, 0, &data, &lane, ahead()), CANELE_OK);
    }
    ASSERT_EQ(kind.post(to(lost), lane), CANELE_OK) << canele_error_detail();
    ASSERT_EQ(put(to(alive), lane), CANELE_OK);
    EXPECT_EQ(is_waiting(lane), stage == Stage::waiting || (stage == Stage::limited && kind.end == End::by_answer));
    for (std::size_t i = 0; i < steps; ++i) {
      if (stage == Stage::sent) job_.engine(0).step();
      if (stage == Stage::executed) job_.step_all();
    }
  }
  void lose_the_target() {
    comm::Engine& origin = job_.engine(0);
    if (GetParam().loss == Loss::destroyed) {
      job_.destroy(lost);
      ASSERT_TRUE(job_.until([&] { return origin.peer(lost).disconnected(); }));
    } else {
      origin.lock_for_callback();
      origin.fail_peer(origin.peer(lost), CANELE_EPEER, true, "a test");
      origin.unlock();
    }
    for (const auto& one : ahead_) {
      ASSERT_TRUE(job_.finish(*one));
      EXPECT_EQ(status_of(*one).error, CANELE_EPEER);
    }
  }

  LocalJob job_;
  std::array<std::vector<unsigned char>, ranks> memory_;
  std::array<canele_memory_t*, ranks> registered_{};
  std::array<canele_key_t*, ranks> keys_{};
  std::vector<canele_lane_t*> lanes_;
  std::vector<std::unique_ptr<canele_request_t>> ahead_;
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(large);
  std::uint64_t word_ = 0;
};

TEST_P(OneSidedLostTarget, TheNextFlushTellsTheErrorOnce) {
  const Stage stage = GetParam().stage;
  const canele_access_options_t untouched = in_new_lane();
  std::vector<canele_access_options_t> by_rank, by_all;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    by_rank.push_back(in_new_lane());
    by_all.push_back(in_new_lane());
  }
  if (stage != Stage::before_attach) attach(untouched);
  if (stage == Stage::limited) await_as_many_answers_as_allowed(in_new_lane());
  if (stage == Stage::after_loss) lose_the_target();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    post(kinds[i], by_rank[i]);
    post(kinds[i], by_all[i]);
  }
  if (stage != Stage::after_loss) lose_the_target();
  EXPECT_EQ(canele_lane_try_flush(untouched.lane), 1) << "the error belongs to other lanes";
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    SCOPED_TRACE(kinds[i].name);
    const bool is_known_over = stage == Stage::executed && kinds[i].end != End::by_flush;
    EXPECT_EQ(flush(alive, by_rank[i]), CANELE_OK) << "the error belongs to another rank";
    EXPECT_EQ(canele_lane_try_flush(by_rank[i].lane), is_known_over ? 1 : 0);
    EXPECT_EQ(flush(lost, by_rank[i]), is_known_over ? CANELE_OK : CANELE_EPEER);
    EXPECT_EQ(flush(lost, by_rank[i]), CANELE_OK) << "the error was told";
    EXPECT_EQ(canele_lane_try_flush(by_rank[i].lane), 1);
    EXPECT_EQ(errors_of_all(by_all[i]), is_known_over ? 0 : 1);
    EXPECT_EQ(errors_of_all(by_all[i]), 0);
  }
  EXPECT_EQ(job_.engine(0).pending_sends, 0u);
}

constexpr Case cases[] = {{"shm", Stage::before_attach, Loss::failed}, {"tcp", Stage::before_attach, Loss::failed},
                          {"shm", Stage::waiting, Loss::failed},       {"tcp", Stage::waiting, Loss::failed},
                          {"shm", Stage::limited, Loss::failed},       {"tcp", Stage::limited, Loss::failed},
                          {"shm", Stage::sent, Loss::failed},          {"tcp", Stage::sent, Loss::failed},
                          {"shm", Stage::executed, Loss::failed},      {"tcp", Stage::executed, Loss::failed},
                          {"shm", Stage::after_loss, Loss::failed},    {"tcp", Stage::after_loss, Loss::failed},
                          {"shm", Stage::waiting, Loss::destroyed},    {"tcp", Stage::waiting, Loss::destroyed},
                          {"shm", Stage::limited, Loss::destroyed},    {"tcp", Stage::limited, Loss::destroyed},
                          {"shm", Stage::sent, Loss::destroyed},       {"tcp", Stage::sent, Loss::destroyed},
                          {"shm", Stage::executed, Loss::destroyed},   {"tcp", Stage::executed, Loss::destroyed},
                          {"shm", Stage::after_loss, Loss::destroyed}, {"tcp", Stage::after_loss, Loss::destroyed}};

std::string name_of(const testing::TestParamInfo<Case>& one) {
  constexpr const char* stages[] = {"before_attach", "waiting", "limited", "sent", "executed", "after_loss"};
  const std::string loss = one.param.loss == Loss::destroyed ? "destroyed" : "failed";
  return std::string(one.param.driver) + "_" + stages[static_cast<int>(one.param.stage)] + "_" + loss;
}
INSTANTIATE_TEST_SUITE_P(All, OneSidedLostTarget, testing::ValuesIn(cases), name_of);

}  // namespace
}  // namespace canele::test::lost_target
