// SPDX-License-Identifier: BSD-3-Clause
//
// The rank's side of a test.
#include "tests/conformance/job.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>

namespace canele::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int spins = 200;     ///< polls without an event before it sleeps
constexpr int timed_step = 1;  ///< ms, for drivers that cannot wake the engine

int milliseconds_to(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 1'000'000));
}

}  // namespace

int open_descriptors() {
  DIR* const directory = ::opendir("/proc/self/fd");
  int count = 0;
  while (directory != nullptr && ::readdir(directory) != nullptr) ++count;
  if (directory != nullptr) ::closedir(directory);
  return count;
}

Job::Job(const drivers::DriverFactory& made_by, const Options& given, Rank own, Rank ranks, int channel, Place& place)
    : rank(own),
      size(ranks),
      options(given),
      factory(made_by),
      node(made_by, own, ranks + 1),
      channel_(channel),
      place_(place) {
  addresses.resize(static_cast<std::size_t>(ranks) + 1);
  node.context.real_time = true;
  node.context.incarnation = static_cast<std::uint64_t>(::getpid()) << 16 | static_cast<std::uint64_t>(own);
  node.context.job = static_cast<std::uint64_t>(::getppid());
  for (const auto& [name, value] : options.settings) node.context.settings[name] = value;
  node.on_ready = [this](Rank peer) { EXPECT_EQ(owed_.erase(peer), 1u) << "ready(" << peer << ") without a full"; };
  ::fcntl(channel_, F_SETFL, O_NONBLOCK);
}

bool Job::start(const std::function<void(Node&)>& adjust) {
  at("open");
  descriptors_ = open_descriptors();
  if (adjust) adjust(node);
  if (node.open() != Status::ok) {
    ADD_FAILURE() << "open() failed: " << node.reason;
    return false;
  }
  EXPECT_LE(node.address.size(), 512u);
  Message message;
  message.kind = Message::address;
  message.size = static_cast<std::uint32_t>(std::min<std::size_t>(node.address.size(), sizeof message.bytes));
  std::copy_n(node.address.begin(), message.size, message.bytes);
  post(channel_, message);
  // The driver is not polled: a peer may send already, and the test has not set its handlers yet.
  wait_for_parent([this] { return addresses_known_ == static_cast<unsigned>(size); }, "the addresses of all");
  return true;
}

bool Job::finish() {
  if (testing::Test::HasFailure()) return false;
  for (Rank peer = 0; peer < size; ++peer) may_fail.insert(peer);  // the first rank to leave the barrier closes first
  if (!barrier("the end of the test")) return false;
  at("close");
  if (node.is_open()) node.close();
  for (const auto& [level, text] : node.context.logged) EXPECT_GT(level, 0) << "the driver logged an error: " << text;
  const int left = open_descriptors() - descriptors_;
  if (!options.keeps_descriptors && !shares_process) {
    EXPECT_LE(left, 0) << "descriptors left open by close()";
  }
  return !testing::Test::HasFailure();
}

void Job::at(const char* where) { std::snprintf(place_.text, sizeof place_.text, "%s", where); }

// ------------------------------------------------------------------------------------------------------- waiting

bool Job::surprised() {
  for (const auto& [peer, why] : node.failures) {
    if (may_fail.count(peer) == 1) continue;
    ADD_FAILURE() << "failed(" << peer << ", " << why.second << ") without a cause; at: " << place_.text;
    return true;
  }
  return false;
}

std::string Job::who_has_failed() const {
  std::string text;
  for (const auto& [peer, why] : node.failures) text += "; failed(" + std::to_string(peer) + "): " + why.second;
  return text;
}

bool Job::until(const std::function<bool()>& condition, const char* what) {
  at(what);
  const auto end = Clock::now() + std::chrono::seconds(wait_limit_s);
  for (unsigned looks = 0;;) {
    look_at_parent();
    if (condition()) return true;
    if (surprised() || (++looks % 256 == 0 && testing::Test::HasFailure())) return false;
    if (Clock::now() > end) {
      const int late = node.poll();
      ADD_FAILURE() << "rank " << rank << " waited " << wait_limit_s << " s for: " << what
                    << (late > 0 ? " (a poll now finds events: was a wake-up lost?)" : "") << who_has_failed();
      return false;
    }
    step(end);
  }
}

void Job::step(Clock::time_point end) {
  if (node.poll() > 0) {
    idle_ = 0;
  } else if (++idle_ > spins) {
    sleep(milliseconds_to(end));
  }
}

/// Sleeps as the engine does: armed if the driver can wake it, else for a timed step. The parent can always wake it.
void Job::sleep(int limit_ms) {
  pollfd list[2] = {{channel_, POLLIN, 0}, {-1, POLLIN, 0}};
  const bool open = node.is_open();
  if (open && can().wake_up == drivers::WakeUp::none) {
    ::poll(list, 1, timed_step);
    return;
  }
  if (open && !node.driver->arm()) return;
  if (open) list[1].fd = node.driver->descriptor();
  ::poll(list, 2, limit_ms);
  if (open) node.driver->disarm();
}

bool Job::sleep_strictly() {
  if (!node.driver->arm()) return true;
  pollfd one = {node.driver->descriptor(), POLLIN, 0};
  const int found = ::poll(&one, 1, wait_limit_s * 1000);
  node.driver->disarm();
  return found == 1;
}

void Job::look_at_parent() {
  Message message;
  for (;;) {
    const int got = take(channel_, &message);
    if (got == 0) return;
    if (got < 0) ::_exit(3);  // the parent has ended
    switch (message.kind) {
      case Message::address:
        addresses[static_cast<std::size_t>(message.rank)].assign(message.bytes, message.bytes + message.size);
        ++addresses_known_;
        break;
      case Message::barrier:
        ++released_;
        break;
      case Message::continued:
        continued_ = true;
        break;
      default:
        ++acknowledged_;
    }
  }
}

bool Job::barrier(const char* name) {
  Message message;
  message.kind = Message::barrier;
  post(channel_, message);
  const unsigned before = released_;
  return until([&] { return released_ != before; }, name);
}

void Job::hold(const char* name) {
  Message message;
  message.kind = Message::barrier;
  post(channel_, message);
  const unsigned before = released_;
  wait_for_parent([&] { return released_ != before; }, name);
}

/// Has no limit of its own: the parent has one.
void Job::wait_for_parent(const std::function<bool()>& condition, const char* what) {
  at(what);
  while (!condition()) {
    pollfd one = {channel_, POLLIN, 0};
    ::poll(&one, 1, -1);
    look_at_parent();
  }
}

bool Job::ask(Message::Kind kind, Rank peer) {
  Message message;
  message.kind = kind;
  message.rank = peer;
  post(channel_, message);
  const unsigned before = acknowledged_;
  return until([&] { return acknowledged_ != before; }, "the parent, to kill or stop a rank");
}

void Job::answer(std::span<const std::byte> bytes) {
  Message message;
  message.kind = Message::answer;
  message.size = static_cast<std::uint32_t>(std::min(bytes.size(), sizeof message.bytes));
  std::copy_n(bytes.begin(), message.size, message.bytes);
  post(channel_, message);
}

// ---------------------------------------------------------------------------------------------- what an engine does

bool Job::connect_all() {
  for (Rank peer = 0; peer < size; ++peer) {
    const bool begins = peer > rank || (peer == rank && can().reaches_self);
    if (begins && connect(peer) == Status::failed) {
      ADD_FAILURE() << "connect(" << peer << ") failed";
      return false;
    }
  }
  const auto all = static_cast<std::size_t>(size - (can().reaches_self ? 0 : 1));
  const auto never = [this] {
    return std::any_of(node.failures.begin(), node.failures.end(),
                       [this](const auto& one) { return !is_up(one.first); });
  };
  if (!until([&] { return node.up.size() == all || never(); }, "connections with all ranks")) return false;
  if (never()) ADD_FAILURE() << "rank " << rank << " will never have connections with all" << who_has_failed();
  return !never();
}

Status Job::account(Rank to, Status status) {
  if (status == Status::full) owed_.insert(to);
  if ((status == Status::ok || status == Status::pending) && node.driver->wants_wake(to)) node.driver->wake(to);
  return status;
}

Status Job::try_send(Rank to, const Bytes& bytes, Way way, int pieces) {
  at("send");
  switch (way) {
    case Way::in_line: {
      const std::size_t head = bytes.size() / 3;
      const Status status = node.driver->send_inline(to, bytes.data(), head, bytes.data() + head, bytes.size() - head);
      EXPECT_NE(status, Status::pending) << "send_inline() answers ok, full or failed";
      return account(to, status);
    }
    case Way::reserved:
      return account(to, send_reserved(to, bytes));
    case Way::packet:
      return account(to, node.send(to, bytes));
    default:
      return account(to, node.send(to, bytes, pieces));
  }
}

/// Reserves more than it needs, at times.
Status Job::send_reserved(Rank to, const Bytes& bytes) {
  const std::size_t wanted = std::min(can().max_packet, bytes.size() + bytes.size() % 7 * 16);
  const std::span<std::byte> room = node.driver->reserve(to, wanted);
  if (room.empty()) return has_failed(to) ? Status::failed : Status::full;
  EXPECT_GE(room.size(), bytes.size());
  std::copy(bytes.begin(), bytes.end(), room.begin());
  node.driver->commit(to, bytes.size());
  return Status::ok;
}

Status Job::try_bulk(Rank to, std::uint64_t key, std::uint64_t offset, const Bytes& bytes, int pieces) {
  at("bulk_send");
  const auto count = static_cast<std::size_t>(pieces);
  const Status status = node.bulk(to, key, offset, bytes, (bytes.size() + count - 1) / count);
  EXPECT_FALSE(can().memory_only && status == Status::pending) << "a memory_only driver never answers pending to bulk";
  return account(to, status);
}

Status Job::try_bulk_lent(Rank to, std::uint64_t key, std::uint64_t offset, iovec piece) {
  return account(to, node.bulk_lent(to, key, offset, piece));
}

bool Job::send(Rank to, const Bytes& bytes, Way way) {
  for (;;) {
    if (owed(to) && !until([&] { return !owed(to) || has_failed(to); }, "ready() after full")) return false;
    const Status status = try_send(to, bytes, way);
    if (status == Status::failed) return false;
    if (status != Status::full) return true;
  }
}

}  // namespace canele::conformance
