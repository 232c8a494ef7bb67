// SPDX-License-Identifier: BSD-3-Clause
//
// A job of two engines in which rank 0 accesses memory of a rank, over each driver, or memory that it has mapped.
//
// One thread drives both engines.
#pragma once

#include <canele/one_sided.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/engine/local_job.hpp"

namespace canele::test::one_sided_access {

inline constexpr std::size_t window = 1 << 20;

struct Case {
  const char* driver;
  int target;           ///< rank that has the memory; rank 0 accesses it
  bool mapped = false;  ///< the library allocates the memory, so that rank 0 maps it
};

class OneSidedJob : public testing::TestWithParam<Case> {
 protected:
  OneSidedJob()
      : job_({2, {comm::find_driver("self"), comm::find_driver(GetParam().driver)}, "aggregate", {}}),
        memory_(window + 2 * guard, guard_byte) {
    void* allocated = memory_.data() + guard;
    const int code = mapped() ? canele_memory_allocate(job_.handle(target()), window, nullptr, &allocated, &registered_)
                              : canele_memory_register(job_.handle(target()), allocated, window, nullptr, &registered_);
    EXPECT_EQ(code, CANELE_OK) << canele_error_detail();
    base_ = static_cast<unsigned char*>(allocated);
    unsigned char bytes[CANELE_KEY_SIZE];
    EXPECT_EQ(canele_memory_key(registered_, bytes), CANELE_OK);
    EXPECT_EQ(canele_key_open(job_.handle(0), bytes, &key_), CANELE_OK) << canele_error_detail();
  }
  ~OneSidedJob() override {
    EXPECT_EQ(canele_key_close(key_), CANELE_OK) << canele_error_detail();
    if (registered_ != nullptr) {
      EXPECT_EQ(canele_memory_free(registered_), CANELE_OK);
    }
    for (std::size_t i = 0; i < guard; ++i) {
      EXPECT_EQ(memory_[i], guard_byte);
      EXPECT_EQ(memory_[window + guard + i], guard_byte);
    }
  }

  int target() const { return GetParam().target; }
  bool mapped() const { return GetParam().mapped; }
  unsigned char* base() { return base_; }
  int put(std::uint64_t offset, const std::vector<std::uint8_t>& bytes, canele_request_t* request,
          const canele_access_options_t* options = nullptr) {
    const canele_data_t data = canele_data_contiguous(bytes.data(), bytes.size());
    return canele_put(key_, offset, &data, options, request);
  }
  int get(std::uint64_t offset, std::vector<std::uint8_t>& bytes, canele_request_t* request) {
    const canele_data_t data = canele_data_contiguous(bytes.data(), bytes.size());
    return canele_get(key_, offset, &data, nullptr, request);
  }
  int flush() {
    canele_request_t request{};
    EXPECT_EQ(canele_flush(job_.handle(0), target(), nullptr, &request), CANELE_OK) << canele_error_detail();
    EXPECT_TRUE(job_.finish(request));
    return status_of(request).error;
  }
  canele_access_options_t options() {
    canele_access_options_t all{};
    all.struct_size = sizeof all;
    return all;
  }
  /// Opens a slot of the target. Returns options that notify it.
  canele_access_options_t notifying(const canele_completion_t& then) {
    canele_access_options_t all = options();
    EXPECT_EQ(canele_notification_open(job_.handle(target()), &then, &all.slot), CANELE_OK) << canele_error_detail();
    return all;
  }

  static constexpr std::size_t guard = 64;
  static constexpr unsigned char guard_byte = 0xa5;
  LocalJob job_;
  std::vector<unsigned char> memory_;
  unsigned char* base_ = nullptr;
  canele_memory_t* registered_ = nullptr;
  canele_key_t* key_ = nullptr;
};

inline const auto every_way = testing::Values(Case{"shm", 1}, Case{"tcp", 1}, Case{"shm", 0}, Case{"shm", 1, true},
                                              Case{"tcp", 1, true}, Case{"shm", 0, true});
inline std::string name_of_way(const testing::TestParamInfo<Case>& one) {
  const std::string name = one.param.target == 0 ? "self" : one.param.driver;
  return one.param.mapped ? name + "_mapped" : name;
}

}  // namespace canele::test::one_sided_access
