// SPDX-License-Identifier: BSD-3-Clause
//
// Server: the PMIx side of canele-run. Gives each rank its identity, serves put, fence and get, and records joins,
// leaves and aborts.
//
// main() opens it before the ranks start, and Job queries it. Threads: the public functions are for the main thread.
// libpmix calls the private functions on its own thread, and they only store what they are told and signal wake_fd(). A
// client stays blocked inside PMIx_Init, PMIx_Finalize and PMIx_Abort until the server has recorded the call. Hence
// joined() and left() are always up to date when the process's end is seen.
#pragma once

#include <pmix.h>
#include <pmix_server.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/rank_server.hpp"

namespace canele::run {

class Server final : public RankServer {
 public:
  /// Opens the server; its files go below `directory`. Throws std::runtime_error, which says what failed. The server
  /// stays for the life of the process: libpmix's thread may call at any time. PMIx_server_finalize (libpmix 4.2.2) can
  /// wait for ever if a rank has died while it connected.
  static Server& open(int ranks, const std::string& directory);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::vector<std::string> environment(int rank, const std::vector<std::string>& base) override;

  bool joined(int rank) const override {
    return clients_[static_cast<std::size_t>(rank)].joined;
  }  ///< called PMIx_Init
  bool finalized(int rank) const override {
    return clients_[static_cast<std::size_t>(rank)].finalized;
  }  ///< called PMIx_Finalize
  bool anyone_joined() const override { return anyone_joined_; }

  int wake_fd() const override { return wake_fd_; }
  void clear_wake() override;
  std::optional<AbortCall> take_abort() override;

  /// Reports by a PMIx event.
  void report_death(int rank, int exit_code) override;

 private:
  struct Client {
    Server* server = nullptr;
    int rank = 0;
    std::atomic<bool> joined{false};
    std::atomic<bool> finalized{false};
  };

  explicit Server(int ranks);
  void start(const std::string& directory);
  static pmix_server_module_t* module();
  static pmix_status_t on_joined(const pmix_proc_t*, void* client, pmix_info_t*, size_t, pmix_op_cbfunc_t, void*);
  static pmix_status_t on_finalized(const pmix_proc_t*, void* client, pmix_op_cbfunc_t, void*);
  static pmix_status_t on_abort(const pmix_proc_t*, void* client, int code, const char* reason, pmix_proc_t*, size_t,
                                pmix_op_cbfunc_t done, void* data);
  void register_job(const std::string& host, const std::string& directory);
  void register_ranks();
  void wake();

  int ranks_;
  std::string job_;  ///< PMIx calls it the name space
  std::unique_ptr<Client[]> clients_;
  std::atomic<bool> anyone_joined_{false};
  int wake_fd_ = -1;
  std::mutex mutex_;  ///< guards abort_
  std::optional<AbortCall> abort_;
};

}  // namespace canele::run
