// SPDX-License-Identifier: BSD-3-Clause
//
// Pmi1Server: the PMI-1 side of canele-run: each rank inherits one end of a socket pair, and talks on it.
//
// Who: main() opens it before the ranks start; Job asks it. Threads: main thread only; it has none of its own.
// Surprise: it is there for ranks in other network name spaces: libpmix listens on 127.0.0.1 of ours, an inherited
//      socket pair has no address at all. What is put can be read at once, not only after the barrier (hydra's way), so
//      that ranks can find out who is missing. Deaths are told by a line of our own, "cmd=canele_died rank=2".
//
//   clients_: one for each rank ──▶ socket (ours), input, output
//   values_:  one key space for the job;  epoll_ (= wake_fd): all sockets
#pragma once

#include <map>
#include <string_view>

#include "apps/run/rank_server.hpp"

namespace canele::run {

class Pmi1Server final : public RankServer {
 public:
  /// Throws std::runtime_error that says what failed.
  explicit Pmi1Server(int ranks);
  ~Pmi1Server() override;
  Pmi1Server(const Pmi1Server&) = delete;
  Pmi1Server& operator=(const Pmi1Server&) = delete;

  std::vector<std::string> environment(int rank, const std::vector<std::string>& base) override;
  int rank_end(int rank) const override { return client(rank).rank_end; }
  void started(int rank) override;
  bool joined(int rank) const override { return client(rank).joined; }
  bool left(int rank) const override { return client(rank).left; }
  bool anyone_joined() const override { return anyone_joined_; }
  int wake_fd() const override { return epoll_; }
  void clear_wake() override;
  std::optional<AbortCall> take_abort() override;
  void tell_death(int rank, int exit_code) override;

 private:
  struct Client {
    int socket = -1, rank_end = -1;
    std::string input, output;
    unsigned events = 0;   ///< what epoll watches
    std::size_t held = 0;  ///< bytes of its keys and values
    bool joined = false, left = false, at_barrier = false, dead = false;
  };
  using Words = std::map<std::string_view, std::string_view>;

  const Client& client(int rank) const { return clients_[static_cast<std::size_t>(rank)]; }
  void serve(int rank);
  void listen(int rank);
  void obey(int rank, std::string_view line);
  std::string answer(int rank, const Words& words);
  std::string publish(Client& client, const Words& words);
  void enter_barrier(Client& client);
  void say(int rank, std::string_view text);
  void flush(int rank);
  void watch(int rank);
  void hang_up(int rank);
  void refuse(int rank, const std::string& why);

  std::string space_;
  std::vector<Client> clients_;
  std::map<std::string, std::string, std::less<>> values_;
  int epoll_ = -1;
  bool anyone_joined_ = false;
  std::optional<AbortCall> abort_;
};

}  // namespace canele::run
