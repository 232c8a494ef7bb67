// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks: a LocalJob whose ranks have a group, and what tests do with it.
//
// One thread, unless a test says otherwise. No thread waits in these tests: the engines are stepped until the expected
// event has happened.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases.hpp"
#include "tests/unit/engine/local_job.hpp"

namespace canele::test {

inline JobOptions job_of(const char* driver, int size, std::vector<std::string> settings = {}) {
  JobOptions options;
  options.size = size;
  options.drivers = {comm::find_driver("self"), comm::find_driver(driver)};
  options.settings = std::move(settings);
  return options;
}

class Ranks {
 public:
  explicit Ranks(const JobOptions& options, const char* label = "test") : job(options) {
    for (int rank = 0; rank < job.size(); ++rank) {
      groups.push_back(nullptr);
      EXPECT_EQ(canele_group_create(job.handle(rank), label, nullptr, 0, &groups.back()), CANELE_OK)
          << canele_error_detail();
    }
  }
  ~Ranks() {
    for (canele_group_t* group : groups) {
      EXPECT_EQ(canele_group_destroy(group), CANELE_OK) << canele_error_detail();
    }
    for (int i = 0; i < 100; ++i) job.step_all();  // frees what is left
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const { return job.size(); }
  canele_group_t* group(int rank) { return groups[static_cast<std::size_t>(rank)]; }

  LocalJob job;
  std::vector<canele_group_t*> groups;
};

/// One collective on all ranks.
class Everywhere {
 public:
  Everywhere(Ranks& ranks, const Case& what) : ranks_(ranks), requests_(static_cast<std::size_t>(ranks.size())) {
    for (int rank = 0; rank < ranks.size(); ++rank) sides_.push_back(std::make_unique<Side>(what, rank));
  }
  void start(int rank, const canele_collective_options_t* options = nullptr) {
    ASSERT_EQ(side(rank).start(ranks_.group(rank), options, &request(rank)), CANELE_OK) << canele_error_detail();
  }
  void start_all(const canele_collective_options_t* options = nullptr) {
    for (int rank = 0; rank < ranks_.size(); ++rank) start(rank, options);
  }
  bool done(int rank) { return comm::request_of(&request(rank)).finalized(); }
  bool done() {
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      if (!done(rank)) return false;
    }
    return true;
  }
  /// Ends the collective on all ranks, and checks the result.
  void finish(const std::string& what) {
    ASSERT_TRUE(ranks_.job.until([&] { return done(); })) << what;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      ASSERT_EQ(status_of(request(rank)).error, CANELE_OK) << what;
      ASSERT_EQ(side(rank).check(), "") << what;
    }
  }
  Side& side(int rank) { return *sides_[static_cast<std::size_t>(rank)]; }
  canele_request_t& request(int rank) { return requests_[static_cast<std::size_t>(rank)]; }

 private:
  Ranks& ranks_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::vector<canele_request_t> requests_;
};

inline canele_collective_options_t options_of(int algorithm) {
  canele_collective_options_t options{};
  options.struct_size = sizeof options;
  options.algorithm = algorithm;
  return options;
}

}  // namespace canele::test
