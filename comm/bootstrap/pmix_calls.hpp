// SPDX-License-Identifier: BSD-3-Clause
//
// The calls into libpmix, each with its callback.
//
// Used by pmix.cpp. join() and put_blob() may wait for libpmix's thread; start_get() and start_survey() do not.
// Callbacks come on libpmix's thread, store into Shared, and signal it. No function here needs a rank to be alive, or
// the server to answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/pmix_shared.hpp"

namespace canele::comm {

/// This process in the job.
struct Membership {
  std::string job;  ///< PMIx calls it the namespace
  int rank = -1;
  int size = 0;
  int local_rank = 0;
  int local_size = 1;
  std::string host;
};

bool put_blob(std::string_view key, const Blob& blob, std::string* why);

/// Commits what was put and starts a fence of all ranks. Returns a pmix_status_t.
int start_fence(const std::shared_ptr<Shared>& shared, std::uint64_t number, std::uint64_t until);

/// Asks for the `key` of every rank. Ranks that have published it are added to Shared::arrived.
void start_survey(const std::shared_ptr<Shared>& shared, std::uint64_t number, std::string_view key,
                  const Membership& me);

void start_get(const std::shared_ptr<Shared>& shared, std::uint64_t number, const Membership& me, int rank,
               std::string_view key, std::uint64_t timeout_ns);

/// Listens to the launcher's reports of deaths during its lifetime.
class Watch {
 public:
  /// Constructor and destructor wait for libpmix: run them with a time limit.
  Watch(const std::shared_ptr<Shared>& shared, const Membership& me);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The context of the handler.
  struct Context {
    std::shared_ptr<Shared> shared;
    std::string job;
    int size;
  };

 private:
  std::unique_ptr<Context> context_;
  bool registered_ = false;
  std::size_t handler_ = 0;
};

struct Joined {
  std::shared_ptr<Shared> shared;
  Membership membership;
  std::shared_ptr<Watch> watch;
};

/// Calls PMIx_Init, reads the job's data, and starts the watch. Stores all in `joined`, which has `shared` already.
/// Returns "" or the error. May hang when the server does: run it with a time limit.
std::string join(Joined* joined);

inline constexpr const char* lost_launcher = "the connection to the launcher is lost";

}  // namespace canele::comm
