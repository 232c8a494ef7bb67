// SPDX-License-Identifier: BSD-3-Clause
//
// Pmi1Server: the PMI-1 side of canele-run. Each rank inherits one end of a socket pair and talks on it.
//
// main() opens it before the ranks start, and Job queries it. Main thread only; it has no thread of its own. An
// inherited socket pair has no address: no other process can connect, and no network is needed. A published value can
// be read at once, not only after the barrier (as in hydra), so that ranks can find out which rank is missing.
//
// Three things are our own extensions. First, deaths are reported by a line, "cmd=canele_died rank=2". It goes to ranks
// that have put or got a key "canele...", as the library does. Second, an abort may carry "canele_reason=...". Third, a
// rank may join again after it has left: as another program, or with "canele_again=1" as the same process.
//
//   clients_: one for each rank ──▶ socket (ours), input, output
//   values_:  one key space for each life of the ranks;  epoll_ (= wake_fd): all sockets
#pragma once

#include <map>
#include <string_view>

#include "apps/run/rank_server.hpp"

namespace canele::run {

class Pmi1Server final : public RankServer {
 public:
  /// Throws std::runtime_error, which says what failed.
  explicit Pmi1Server(int ranks);
  ~Pmi1Server() override;
  Pmi1Server(const Pmi1Server&) = delete;
  Pmi1Server& operator=(const Pmi1Server&) = delete;

  std::vector<std::string> environment(int rank, const std::vector<std::string>& base) override;
  int rank_end(int rank) const override { return client(rank).rank_end; }
  void started(int rank) override;
  bool joined(int rank) const override { return client(rank).joined; }
  bool finalized(int rank) const override { return client(rank).finalized; }
  bool anyone_joined() const override { return anyone_joined_; }
  int wake_fd() const override { return epoll_; }
  void clear_wake() override;
  std::optional<AbortCall> take_abort() override;
  void report_death(int rank, int exit_code) override;

 private:
  struct Client {
    int socket = -1, rank_end = -1;
    std::string input, output;
    unsigned events = 0;     ///< events that epoll watches
    std::size_t stored = 0;  ///< bytes of its keys and values
    int life = 0;            ///< how often it has joined
    bool joined = false, finalized = false, at_barrier = false, dead = false, understands_deaths = false;
  };
  using Words = std::map<std::string_view, std::string_view>;

  const Client& client(int rank) const { return clients_[static_cast<std::size_t>(rank)]; }
  void serve(int rank);
  void listen(int rank);
  void execute(int rank, std::string_view line);
  std::string answer(int rank, const Words& words);
  void begin_life(Client& client);
  std::string finalize(Client& client);
  std::string space_of(const Client& client) const;
  std::string look_up(const Client& client, const Words& words) const;
  std::string publish(Client& client, const Words& words);
  void enter_barrier(Client& client);
  void send_to(int rank, std::string_view text);
  void flush(int rank);
  void watch(int rank);
  void disconnect(int rank);
  void reject(int rank, const std::string& why);

  std::string name_;
  std::vector<Client> clients_;
  std::vector<int> deaths_;  ///< ranks that have died, the first one first: a fence may end at the first report
  std::map<int, std::map<std::string, std::string, std::less<>>> values_;
  int epoll_ = -1;
  bool anyone_joined_ = false;
  std::optional<AbortCall> abort_;
};

}  // namespace canele::run
