// SPDX-License-Identifier: BSD-3-Clause
//
// The PMI-1 server.
#include "apps/run/pmi1_server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <utility>

#include "apps/run/message.hpp"

namespace canele::run {
namespace {

constexpr std::size_t longest_key = 64, longest_value = 1024, longest_space = 256;  // with C's final zero
constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_stored = std::size_t{4} << 20;  // bytes published by one rank
constexpr std::size_t most_unread = std::size_t{1} << 16;  // bytes of replies that a rank has not read

std::map<std::string_view, std::string_view> words_of(std::string_view line) {
  std::map<std::string_view, std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    at = end + 1;
    if (const std::size_t sign = word.find('='); sign != std::string_view::npos && sign > 0)
      words[word.substr(0, sign)] = word.substr(sign + 1);
  }
  return words;
}

std::string_view word(const std::map<std::string_view, std::string_view>& words, std::string_view name) {
  const auto found = words.find(name);
  return found == words.end() ? std::string_view() : found->second;
}

int number(std::string_view text, int otherwise) {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Decodes a text in which the library has written "%20" for a blank, and so on. Drops characters that could move a
/// terminal's cursor.
std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned code = static_cast<unsigned char>(text[at]);
    if (text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(text.data() + at + 1, text.data() + at + 3, code, 16).ptr == text.data() + at + 3)
      at += 2;
    if (code >= 32 && code != 127) result += static_cast<char>(code);
  }
  return result;
}

std::string death_of(int rank) { return fmt::format("cmd=canele_died rank={}\n", rank); }

}  // namespace

Pmi1Server::Pmi1Server(int ranks) : clients_(static_cast<std::size_t>(ranks)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  std::random_device random;
  name_ = fmt::format("canele-run.{}.{:08x}{:08x}", getpid(), random(), random());
  if (epoll_ < 0) throw std::runtime_error(fmt::format("epoll: {}", std::strerror(errno)));
}

Pmi1Server::~Pmi1Server() {
  for (int rank = 0; rank < static_cast<int>(clients_.size()); ++rank) {
    started(rank);
    disconnect(rank);
  }
  if (epoll_ >= 0) close(epoll_);
}

/// Also connects the rank. It does so here and not at the start, because only Processes raises the descriptor limit.
std::vector<std::string> Pmi1Server::environment(int rank, const std::vector<std::string>& base) {
  assert(client(rank).socket < 0);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(fmt::format("no connection to it: {} (ulimit -n)", std::strerror(errno)));
  clients_[static_cast<std::size_t>(rank)].socket = ends[0];
  clients_[static_cast<std::size_t>(rank)].rank_end = ends[1];
  watch(rank);
  std::vector<std::string> all = base;
  all.push_back(fmt::format("PMI_FD={}", client(rank).rank_end));
  all.push_back(fmt::format("PMI_RANK={}", rank));
  all.push_back(fmt::format("PMI_SIZE={}", clients_.size()));
  all.push_back(fmt::format("MPI_LOCALRANKID={}", rank));
  all.push_back(fmt::format("MPI_LOCALNRANKS={}", clients_.size()));
  return all;
}

void Pmi1Server::started(int rank) {
  Client& c = clients_[static_cast<std::size_t>(rank)];
  if (c.rank_end >= 0) close(c.rank_end);
  c.rank_end = -1;
}

void Pmi1Server::clear_wake() {
  epoll_event events[32];
  int count;
  while ((count = epoll_wait(epoll_, events, 32, 0)) > 0)
    for (int i = 0; i < count; ++i) serve(static_cast<int>(events[i].data.u32));
}

void Pmi1Server::serve(int rank) {
  flush(rank);
  if (client(rank).output.empty()) listen(rank);
}

void Pmi1Server::listen(int rank) {
  Client& c = clients_[static_cast<std::size_t>(rank)];
  char bytes[4096];
  while (c.socket >= 0 && c.output.empty()) {  // a rank that does not read its replies is not read from
    if (const std::size_t end = c.input.find('\n'); end != std::string::npos) {
      const std::string line = c.input.substr(0, end);
      c.input.erase(0, end + 1);
      execute(rank, line);
      continue;
    }
    if (c.input.size() > longest_line) return reject(rank, "a line without an end");
    const ssize_t got = recv(c.socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return disconnect(rank);
    c.input.append(bytes, static_cast<std::size_t>(got));
  }
}

void Pmi1Server::execute(int rank, std::string_view line) {
  const Words words = words_of(line);
  Client& c = clients_[static_cast<std::size_t>(rank)];
  if (word(words, "cmd") == "barrier_in") return enter_barrier(c);
  if (word(words, "cmd") == "abort") {
    const int code = number(word(words, "exitcode"), 1);
    if (!abort_) abort_ = AbortCall{rank, code, decoded(word(words, "canele_reason"))};
    return;
  }
  const std::string text = answer(rank, words);
  if (text.empty()) return reject(rank, fmt::format("'{}', which canele-run does not serve", line.substr(0, 60)));
  send_to(rank, text);
  if (c.understands_deaths || !word(words, "key").starts_with("canele.")) return;
  c.understands_deaths = true;
  for (const int other : deaths_) send_to(rank, death_of(other));  // it had not joined when they died
}

/// Returns the reply to a request; "" if there is none.
std::string Pmi1Server::answer(int rank, const Words& words) {
  Client& c = clients_[static_cast<std::size_t>(rank)];
  const std::string_view command = word(words, "cmd");
  if (command == "init") {
    if (word(words, "canele_again").empty()) begin_life(c);
    c.joined = anyone_joined_ = true;
    c.finalized = false;  // a process may join again, with its next engine
    const bool right = word(words, "pmi_version") == "1";
    return fmt::format("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={}\n", right ? 0 : -1);
  }
  if (command == "get_maxes")
    return fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}\n", longest_space, longest_key,
                       longest_value);
  if (command == "get_my_kvsname") return fmt::format("cmd=my_kvsname kvsname={}\n", space_of(c));
  if (command == "get_universe_size") return fmt::format("cmd=universe_size size={}\n", clients_.size());
  if (command == "get_appnum") return "cmd=appnum appnum=0\n";
  if (command == "put") return publish(c, words);
  if (command == "get") return look_up(c, words);
  if (command == "finalize") return finalize(c);
  return {};
}

/// Begins a new life of a rank. A rank may be a script that runs one program after the other. The second program must
/// not find what the first has published. (A process that has left and returns says "canele_again=1" and finds its own
/// values.)
void Pmi1Server::begin_life(Client& client) {
  client.at_barrier = client.understands_deaths = false;
  client.stored = 0;
  ++client.life;
}

/// Handles a leave. Once all ranks have left, drops all published values, so that ranks may come and go for ever.
std::string Pmi1Server::finalize(Client& client) {
  client.finalized = true;
  client.at_barrier = false;  // it no longer waits at the barrier
  if (std::all_of(clients_.begin(), clients_.end(), [](const Client& one) { return one.finalized; })) {
    values_.clear();
    for (Client& one : clients_) one.stored = 0;
  }
  return "cmd=finalize_ack\n";
}

std::string Pmi1Server::space_of(const Client& client) const {
  return client.life <= 1 ? name_ : fmt::format("{}.{}", name_, client.life);
}

std::string Pmi1Server::look_up(const Client& client, const Words& words) const {
  const std::string_view key = word(words, "key");
  if (word(words, "kvsname") == space_of(client)) {
    const auto space = values_.find(client.life);
    if (space != values_.end()) {
      const auto found = space->second.find(key);
      if (found != space->second.end()) return fmt::format("cmd=get_result rc=0 msg=success value={}\n", found->second);
    }
    if (key == "PMI_process_mapping")  // MPICH's key: one host
      return fmt::format("cmd=get_result rc=0 msg=success value=(vector,(0,1,{}))\n", clients_.size());
  }
  return "cmd=get_result rc=-1 msg=not_found value=unknown\n";
}

std::string Pmi1Server::publish(Client& client, const Words& words) {
  const std::string_view key = word(words, "key"), value = word(words, "value");
  const char* problem = nullptr;
  if (word(words, "kvsname") != space_of(client)) problem = "unknown_kvsname";
  if (key.empty() || key.size() >= longest_key) problem = "key_empty_or_too_long";
  if (value.size() >= longest_value) problem = "value_too_long";
  if (client.stored + key.size() + value.size() > most_stored) problem = "this_rank_has_put_too_much";
  if (problem != nullptr) return fmt::format("cmd=put_result rc=-1 msg={}\n", problem);
  client.stored += key.size() + value.size();
  values_[client.life].insert_or_assign(std::string(key), std::string(value));
  return "cmd=put_result rc=0 msg=success\n";
}

void Pmi1Server::enter_barrier(Client& client) {
  client.at_barrier = true;
  const int life = client.life;
  if (!std::all_of(clients_.begin(), clients_.end(),
                   [life](const Client& one) { return one.at_barrier && one.life == life; }))
    return;
  for (Client& one : clients_) one.at_barrier = false;
  values_.erase(values_.begin(), values_.lower_bound(life));  // every rank has left these
  for (int rank = 0; rank < static_cast<int>(clients_.size()); ++rank) send_to(rank, "cmd=barrier_out\n");
}

void Pmi1Server::send_to(int rank, std::string_view text) {
  Client& c = clients_[static_cast<std::size_t>(rank)];
  if (c.socket < 0) return;
  if (c.output.size() + text.size() > most_unread) return reject(rank, "requests without reading the replies");
  c.output += text;
  flush(rank);
}

void Pmi1Server::flush(int rank) {
  Client& c = clients_[static_cast<std::size_t>(rank)];
  while (c.socket >= 0 && !c.output.empty()) {
    const ssize_t sent = send(c.socket, c.output.data(), c.output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      c.output.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      c.output.clear();  // the rank is gone; listen() reads its last data and finds the end
    }
  }
  watch(rank);
}

/// Waits for input while no reply is pending, else for room to write.
void Pmi1Server::watch(int rank) {
  Client& c = clients_[static_cast<std::size_t>(rank)];
  const unsigned wanted = c.output.empty() ? EPOLLIN : EPOLLOUT;
  if (c.socket < 0 || c.events == wanted) return;
  epoll_event event = {};
  event.events = wanted;
  event.data.u32 = static_cast<std::uint32_t>(rank);
  epoll_ctl(epoll_, c.events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c.socket, &event);
  c.events = wanted;
}

void Pmi1Server::disconnect(int rank) {
  Client& c = clients_[static_cast<std::size_t>(rank)];
  if (c.socket >= 0) close(c.socket);  // also removes it from the epoll set
  c.socket = -1;
  c.output.clear();
}

void Pmi1Server::reject(int rank, const std::string& why) {
  say(fmt::format("rank {} has sent {}; its PMI connection is closed", rank, why));
  disconnect(rank);
}

std::optional<AbortCall> Pmi1Server::take_abort() { return std::exchange(abort_, std::nullopt); }

void Pmi1Server::report_death(int rank, int) {
  clients_[static_cast<std::size_t>(rank)].dead = true;
  deaths_.push_back(rank);
  for (int other = 0; other < static_cast<int>(clients_.size()); ++other)
    if (other != rank && !client(other).dead && client(other).understands_deaths && !client(other).finalized)
      send_to(other, death_of(rank));
}

}  // namespace canele::run
