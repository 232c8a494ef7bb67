// SPDX-License-Identifier: BSD-3-Clause
//
// The PMI-1 bootstrap: the descriptor, the clock and the waiting around Pmi1Client.
//
// The descriptor stays in blocking mode, because a wrapper script may share it; every call uses MSG_DONTWAIT.
#include "comm/bootstrap/pmi1.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "comm/bootstrap/bounded.hpp"
#include "comm/bootstrap/limits.hpp"
#include "comm/bootstrap/pmi1_client.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
/// Calls of progress() between polls of a launcher that owes no answer. A thread that waits polls at once.
constexpr unsigned idle_turns = 256;

class Pmi1Bootstrap final : public ProcessBootstrap {
 public:
  Pmi1Bootstrap(Platform& platform, const Pmi1Place& place)
      : platform_(platform),
        place_(place),
        host_(host_name()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        client_(place.rank, place.size) {}
  ~Pmi1Bootstrap() override {
    for (const int fd : {place_.descriptor, epoll_, timer_})
      if (fd >= 0) close(fd);
  }

  bool join(std::uint64_t timeout_ns, std::string* why);

  std::string_view name() const override { return "pmi1"; }
  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }
  int local_rank() const override { return place_.local_rank; }
  int local_size() const override { return place_.local_size; }
  std::uint64_t job() const override { return fingerprint(client_.space()); }
  const std::string& host() const override { return host_; }

  bool put(std::string_view key, const Blob& blob, std::string* why) override;
  bool commit_and_fence(std::uint64_t timeout_ns, std::string* why) override { return fence(timeout_ns, why); }
  bool fence(std::uint64_t timeout_ns, std::string* why) override;
  void get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) override;
  void on_failure(std::function<void(int)> died) override;
  bool has_died(int rank) const override {
    const std::lock_guard lock(mutex_);
    return client_.dead().contains(rank);
  }
  void abort(int code, std::string_view reason) override;
  void finalize() override;
  void rest() override;
  bool resume(std::uint64_t timeout_ns, std::string* why) override;
  int descriptor() const override { return epoll_; }
  bool progress(std::uint64_t wait_ns) override;

 private:
  bool await_hello(std::uint64_t timeout_ns, std::string* why);
  void send_goodbye();
  void exchange();
  void ring_others();
  void send_output();
  void receive_input();
  void watch_output(bool on);
  void disconnect();
  void set_timer();
  bool tell(std::unique_lock<std::mutex>& lock);
  template <typename Condition>
  bool drive(std::uint64_t until, Condition&& holds);
  std::string who_has_died() const;
  std::string who_is_missing(std::uint64_t until);

  Platform& platform_;
  Pmi1Place place_;
  std::string host_;
  int epoll_, timer_;
  mutable std::mutex mutex_;  ///< guards what follows, as far as it is not atomic
  Pmi1Client client_;
  std::function<void(int)> died_;
  bool watching_output_ = false, watching_input_ = false;
  bool heard_ = false;
  std::multiset<int> bells_;  ///< of the threads in drive(); -1: a thread without a bell, which polls often
  std::uint64_t timer_at_ = Pmi1Client::never;
  std::uint64_t fences_ = 0;  ///< fences that all ranks have entered
  bool fence_failed_ = false, disconnected_ = false;
  std::atomic<bool> busy_{true};  ///< the launcher owes an answer
  std::atomic<unsigned> turns_{0};
};

bool Pmi1Bootstrap::join(std::uint64_t timeout_ns, std::string* why) {
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.fd = place_.descriptor;
  epoll_event timer = {};
  timer.events = EPOLLIN;
  timer.data.fd = timer_;
  if (epoll_ < 0 || timer_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, place_.descriptor, &wanted) != 0 ||
      epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &timer) != 0) {
    *why = std::string("cannot watch the connection to the launcher: ") + std::strerror(errno);
    return false;
  }
  watching_input_ = true;
  return await_hello(timeout_ns, why);
}

bool Pmi1Bootstrap::await_hello(std::uint64_t timeout_ns, std::string* why) {
  const bool answered =
      drive(deadline_after(platform_, timeout_ns), [this] { return client_.hello_done() || client_.lost(); });
  if (client_.hello_done()) return true;
  *why = answered ? client_.loss() : "the launcher does not answer";
  return false;
}

/// Sends and receives what is possible now. Called under the mutex.
void Pmi1Bootstrap::exchange() {
  if (!disconnected_) {
    send_output();
    receive_input();
    client_.pass_time(platform_.now_ns());
    send_output();
  }
  if (client_.lost()) disconnect();
  set_timer();
  busy_ = !client_.idle();
  if (std::exchange(heard_, false)) ring_others();
}

/// Wakes the other threads in drive(), because what one thread has received may be what another waits for.
void Pmi1Bootstrap::ring_others() {
  for (const int bell : bells_)
    if (bell >= 0) eventfd_write(bell, 1);
}

void Pmi1Bootstrap::send_output() {
  std::string& output = client_.output();
  while (!output.empty() && !client_.lost()) {
    const ssize_t sent = send(place_.descriptor, output.data(), output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      output.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return watch_output(true);
    } else if (errno != EINTR) {
      // What the launcher has sent before may still be there, and tells the reason.
      receive_input();
      return client_.lose("the connection to the launcher is lost");
    }
  }
  watch_output(false);
}

void Pmi1Bootstrap::receive_input() {
  char bytes[4096];
  while (!client_.lost() && !client_.finalized()) {  // a launcher that has let this rank go may close the connection
    const ssize_t got = recv(place_.descriptor, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
      client_.hear({bytes, static_cast<std::size_t>(got)}, platform_.now_ns());
      heard_ = true;
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got == 0 || errno != EINTR) {
      return client_.lose("the connection to the launcher is lost");
    }
  }
}

void Pmi1Bootstrap::watch_output(bool on) {
  if (on == watching_output_ || !watching_input_) return;
  watching_output_ = on;
  epoll_event wanted = {};
  wanted.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN;
  wanted.data.fd = place_.descriptor;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, place_.descriptor, &wanted);
}

/// Stops watching the socket. A closed socket is always readable, so no thread may sleep on it.
void Pmi1Bootstrap::disconnect() {
  if (!watching_input_) return;
  watching_input_ = false;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, place_.descriptor, nullptr);
  if (!disconnected_) platform_.log(LogLevel::warning, "rank " + std::to_string(place_.rank) + ": " + client_.loss());
}

void Pmi1Bootstrap::set_timer() {
  const std::uint64_t next = client_.next_time();
  std::uint64_t expired;
  [[maybe_unused]] const ssize_t ignored = read(timer_, &expired, sizeof expired);  // else it stays readable
  if (next == timer_at_ && ignored < 0) return;
  timer_at_ = next;
  itimerspec when = {};
  if (next != Pmi1Client::never) {
    const std::uint64_t now = platform_.now_ns();
    const std::uint64_t left = next > now ? next - now : 1;  // 0 would switch it off
    when.it_value.tv_sec = static_cast<time_t>(left / ns_per_second);
    when.it_value.tv_nsec = static_cast<long>(left % ns_per_second);
  }
  timerfd_settime(timer_, 0, &when, nullptr);
}

/// Unlocks the mutex, then delivers the news. Returns true if there was something to deliver.
bool Pmi1Bootstrap::tell(std::unique_lock<std::mutex>& lock) {
  Pmi1Client::News news = client_.take_news();
  const std::function<void(int)> died = news.deaths.empty() ? nullptr : died_;
  lock.unlock();
  for (Pmi1Client::Answer& answer : news.answers) answer.deliver(answer.ok, std::move(answer.blob), answer.why);
  if (died)
    for (const int rank : news.deaths) died(rank);
  return !news.empty();
}

bool Pmi1Bootstrap::progress(std::uint64_t wait_ns) {
  if (wait_ns == 0 && !busy_.load(std::memory_order_relaxed) &&
      turns_.fetch_add(1, std::memory_order_relaxed) % idle_turns != 0)
    return false;
  if (wait_ns > 0) {
    pollfd watched = {epoll_, POLLIN, 0};
    poll(&watched, 1, static_cast<int>(std::min(wait_ns / ns_per_ms + 1, std::uint64_t{60'000})));
  }
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // its holder does the same
  exchange();
  return tell(lock);
}

/// Waits until `holds()`, which is called under the mutex. Returns false if the time `until` came first. Several
/// threads may wait at once, and each may receive what is for another: so each has a bell.
template <typename Condition>
bool Pmi1Bootstrap::drive(std::uint64_t until, Condition&& holds) {
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const std::uint64_t longest_ms = bell >= 0 ? 60'000 : 10;
  std::unique_lock lock(mutex_);
  const auto place = bells_.insert(bell);
  bool done = false;
  while (true) {
    exchange();
    tell(lock);  // before the test: what is delivered may be what is waited for
    lock.lock();
    done = holds();
    const std::uint64_t now = platform_.now_ns();
    if (done || now >= until) break;
    lock.unlock();
    pollfd watched[] = {{epoll_, POLLIN, 0}, {bell, POLLIN, 0}};
    poll(watched, 2, static_cast<int>(std::min((until - now) / ns_per_ms + 1, longest_ms)));
    eventfd_t rung;
    if (bell >= 0) eventfd_read(bell, &rung);
    lock.lock();
  }
  bells_.erase(place);
  lock.unlock();
  if (bell >= 0) close(bell);
  return done;
}

bool Pmi1Bootstrap::put(std::string_view key, const Blob& blob, std::string* why) {
  const std::lock_guard lock(mutex_);
  if (client_.lost()) {
    *why = client_.loss();
    return false;
  }
  return client_.put(key, blob, why);
}

/// Waits for all ranks. Most of the time is for the fence, and a little to find out which ranks are missing.
bool Pmi1Bootstrap::fence(std::uint64_t timeout_ns, std::string* why) {
  const std::uint64_t until = deadline_after(platform_, timeout_ns);
  {
    const std::lock_guard lock(mutex_);
    *why = fence_failed_ ? failed_fence : who_has_died();
    if (!why->empty()) return false;
    fence_failed_ = true;
    if (!client_.put(fence_key(fences_ + 1), {std::byte{1}}, why)) return false;
    client_.enter_barrier();
  }
  const bool done = drive(until - std::min(survey_of(place_.size), timeout_ns / 2), [this] {
    fence_failed_ = client_.in_barrier();
    return !fence_failed_ || client_.lost() || !client_.dead().empty();
  });
  std::unique_lock lock(mutex_);
  if (!fence_failed_) {
    ++fences_;
    return true;
  }
  if (done) {
    *why = who_has_died();
    return false;
  }
  lock.unlock();
  *why = who_is_missing(until);
  return false;
}

/// Returns which ranks have died; "" if no death is known. Called under the mutex.
std::string Pmi1Bootstrap::who_has_died() const {
  if (client_.lost()) return client_.loss();
  if (client_.dead().empty()) return {};
  return list_ranks({client_.dead().begin(), client_.dead().end()}) + (client_.dead().size() == 1 ? " has" : " have") +
         " died";
}

/// Finds the missing ranks by the marks that ranks publish before they enter a fence. hydra shows no mark before all
/// ranks have entered.
std::string Pmi1Bootstrap::who_is_missing(std::uint64_t until) {
  struct Survey {
    std::mutex mutex;
    std::vector<int> missing;
    int left;
    bool own_seen = false;
  };
  const auto survey = std::make_shared<Survey>();
  survey->left = place_.size;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = platform_.now_ns();
    for (int rank = 0; rank < place_.size; ++rank) {
      const auto note = [survey, rank, own = rank == place_.rank](bool ok, const Blob&, const std::string&) {
        const std::lock_guard guard(survey->mutex);
        --survey->left;
        if (!ok) survey->missing.push_back(rank);
        survey->own_seen = survey->own_seen || (ok && own);
      };
      client_.ask({rank, fence_key(fences_ + 1), note, false}, until, now);
    }
  }
  drive(until, [&survey] {
    const std::lock_guard guard(survey->mutex);
    return survey->left == 0;
  });
  const std::lock_guard lock(mutex_);
  if (std::string loss = who_has_died(); !loss.empty()) return loss;
  const std::lock_guard guard(survey->mutex);
  const std::string all = std::to_string(place_.size) + " ranks have come";
  if (survey->left != 0 || !survey->own_seen)
    return "not all " + all + " in the time given; the launcher does not name the missing ones";
  if (survey->missing.empty()) return "all " + all + ", but the launcher has not confirmed it in the time given";
  return "only " + std::to_string(place_.size - static_cast<int>(survey->missing.size())) + " of " + all + "; " +
         list_ranks(survey->missing) + (survey->missing.size() == 1 ? " is" : " are") + " missing";
}

void Pmi1Bootstrap::get(int rank, std::string_view key, std::uint64_t timeout_ns, Deliver deliver) {
  if (rank < 0 || rank >= place_.size)
    return deliver(false, {},
                   "there is no rank " + std::to_string(rank) + " in a job of " + std::to_string(place_.size));
  std::unique_lock lock(mutex_);
  client_.ask({rank, std::string(key), std::move(deliver)}, deadline_after(platform_, timeout_ns), platform_.now_ns());
  exchange();
  tell(lock);
}

void Pmi1Bootstrap::on_failure(std::function<void(int)> died) {
  std::vector<int> already;
  {
    const std::lock_guard lock(mutex_);
    assert(!died_ && "at most one handler");
    died_ = died;
    already.assign(client_.dead().begin(), client_.dead().end());
  }
  for (const int rank : already) died(rank);
}

void Pmi1Bootstrap::abort(int code, std::string_view reason) {
  bool told = false;
  {
    const std::lock_guard lock(mutex_);
    told = client_.launcher_is_ours() && !client_.lost();  // canele-run prints the reason itself
    client_.abort(code, reason);
  }
  if (!told)
    platform_.log(LogLevel::error, "the job ends with code " + std::to_string(code) + ": " + std::string(reason));
  drive(deadline_after(platform_, goodbye_of(place_.size)),
        [this] { return client_.output().empty() || client_.lost(); });
}

void Pmi1Bootstrap::send_goodbye() {
  {
    const std::lock_guard lock(mutex_);
    if (client_.finalized()) return;
    client_.finalize();
  }
  drive(deadline_after(platform_, goodbye_of(place_.size)), [this] { return client_.finalized() || client_.lost(); });
}

/// Leaves the job between engines. hydra kills the job when a rank ends without having left, and ignores a rank that
/// has left. canele-run lets a rank join again.
void Pmi1Bootstrap::rest() {
  if (client_.launcher_is_ours())
    send_goodbye();
  else
    finalize();
}

bool Pmi1Bootstrap::resume(std::uint64_t timeout_ns, std::string* why) {
  {
    const std::lock_guard lock(mutex_);
    if (disconnected_) {
      *why =
          "this process has ended its last engine, and with it has left its job; mpiexec.hydra lets no process join "
          "twice: keep an engine until the end, or use canele-run";
      return false;
    }
    *why = client_.finalized() ? who_has_died()
                               : "canele-run has not confirmed that this process has ended its last engine";
    if (!why->empty()) return false;
    client_.come_back();
    fence_failed_ = false;
  }
  return await_hello(timeout_ns, why);
}

void Pmi1Bootstrap::finalize() {
  send_goodbye();
  std::unique_lock lock(mutex_);
  disconnected_ = true;
  died_ = nullptr;
  client_.lose("this rank has left the job");
  disconnect();
  tell(lock);
}

/// Returns the non-negative integer in a variable. -1: the variable is missing, or has no such number.
int number_in(Platform& platform, const char* name) {
  const char* text = platform.variable(name);
  if (text == nullptr) return -1;
  int value = -1;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, value);
  return error == std::errc() && rest == end && rest != text && value >= 0 ? value : -1;
}

bool is_socket(int fd) {
  struct stat information = {};
  return fstat(fd, &information) == 0 && S_ISSOCK(information.st_mode);
}

std::string shown(Platform& platform, const char* name) {
  const char* text = platform.variable(name);
  return std::string(name) + (text == nullptr ? " is not set" : "=" + std::string(text));
}

}  // namespace

std::unique_ptr<ProcessBootstrap> make_pmi1(Platform& platform, const Pmi1Place& place, std::uint64_t timeout_ns,
                                            std::string* why) {
  auto made = std::make_unique<Pmi1Bootstrap>(platform, place);
  if (!made->join(timeout_ns, why)) return nullptr;
  return made;
}

std::unique_ptr<ProcessBootstrap> join_pmi1(Platform& platform, std::uint64_t timeout_ns, std::string* why) {
  const std::string which = "started by a PMI-1 launcher (mpiexec.hydra, or canele-run), but ";
  Pmi1Place place;
  place.descriptor = number_in(platform, "PMI_FD");
  place.rank = number_in(platform, "PMI_RANK");
  place.size = number_in(platform, "PMI_SIZE");
  if (place.descriptor < 0 || place.size <= 0 || place.rank < 0 || place.rank >= place.size) {
    *why = which + "its variables are malformed: " + shown(platform, "PMI_FD") + ", " + shown(platform, "PMI_RANK") +
           ", " + shown(platform, "PMI_SIZE") + "; expected: as the launcher has set them";
    return nullptr;
  }
  if (!is_socket(place.descriptor)) {
    *why = which + "the descriptor that PMI_FD=" + std::to_string(place.descriptor) +
           " names is not open, or no socket: was this process started by a rank, or by a program that closes what it "
           "inherits? Unset PMI_FD, PMI_RANK, PMI_SIZE and MPI_LOCAL* to run alone";
    return nullptr;
  }
  fcntl(place.descriptor, F_SETFD, FD_CLOEXEC);  // child processes are no ranks
  const int local_rank = number_in(platform, "MPI_LOCALRANKID"), local_size = number_in(platform, "MPI_LOCALNRANKS");
  if (local_rank >= 0 && local_size > local_rank) {
    place.local_rank = local_rank;
    place.local_size = local_size;
  }
  std::unique_ptr<ProcessBootstrap> made = make_pmi1(platform, place, timeout_ns, why);
  if (made == nullptr) *why = which + *why;
  return made;
}

}  // namespace canele::comm
