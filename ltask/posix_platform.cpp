// SPDX-License-Identifier: BSD-3-Clause
//
// The production Platform: the one file of comm, ltask and strategies that asks the system for time, randomness,
// threads, sleep, the environment and files.
//
// The C ABI passes posix_platform() to the engine; no other code constructs it. Random bits are buffered per thread.
//
// Threads start with all signals blocked: a library's thread must not run the host program's signal handlers.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <new>
#include <span>
#include <utility>

#include "ltask/log_sink.hpp"
#include "ltask/platform.hpp"
#include "ltask/write_quietly.hpp"

namespace canele {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;

std::uint64_t read_clock() noexcept {
  timespec now;
  [[maybe_unused]] const int failed = clock_gettime(CLOCK_MONOTONIC, &now);
  assert(failed == 0);
  return static_cast<std::uint64_t>(now.tv_sec) * ns_per_second + static_cast<std::uint64_t>(now.tv_nsec);
}

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  static_assert(sizeof word == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
  // The kernel only reads the word for WAIT and WAKE, so casting away const is harmless.
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

/// Random bits, fetched 32 words at a time. A forked child would repeat its parent's; a changed process id reveals the
/// fork.
struct RandomBuffer {
  std::array<std::uint64_t, 32> words;
  std::size_t left = 0;
  pid_t owner = 0;
};

void fill_random(std::span<std::byte> out) noexcept {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      // A kernel or sandbox without getrandom: the device gives equivalent bits.
      const int device = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
      const ssize_t from_device = device < 0 ? -1 : read(device, out.data(), out.size());
      if (device >= 0) close(device);
      if (from_device <= 0) std::abort();  // going on with guessable secrets would be worse
      out = out.subspan(static_cast<std::size_t>(from_device));
    }
  }
}

/// Arguments and results of a thread's start. Lives on the starter's stack until `started` is set.
struct ThreadStart {
  std::function<void()> body;
  char name[16];  // the kernel's limit
  std::atomic<std::uint32_t> started{0};
  long id = 0;
};

void* thread_main(void* argument) {
  auto* start = static_cast<ThreadStart*>(argument);
  const auto body = std::move(start->body);
  pthread_setname_np(pthread_self(), start->name);
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // the kernel's default of 50 us would prolong short sleeps
  start->id = syscall(SYS_gettid);
  // `start` may vanish as soon as the store is seen: the wake-up uses only its address.
  start->started.store(1, std::memory_order_release);
  futex(start->started, FUTEX_WAKE_PRIVATE, std::numeric_limits<std::int32_t>::max(), nullptr);
  body();
  return nullptr;
}

class PosixThread final : public PlatformThread {
 public:
  /// Returns false if the system has no room for another thread.
  bool start(const char* name, std::function<void()> body) {
    ThreadStart start;
    start.body = std::move(body);
    strncpy(start.name, name, sizeof start.name - 1);
    start.name[sizeof start.name - 1] = '\0';
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&thread_, nullptr, thread_main, &start);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failed != 0) return false;
    while (start.started.load(std::memory_order_acquire) == 0) futex(start.started, FUTEX_WAIT_PRIVATE, 0, nullptr);
    id_ = start.id;
    assert(id_ > 0);
    return true;
  }

  ~PosixThread() override {
    if (id_ == 0) return;
    assert(id_ != syscall(SYS_gettid));  // a thread that joins itself never ends
    pthread_join(thread_, nullptr);
  }

  long native_id() const override { return id_; }

  void use_busy_cores() noexcept override {
    const sched_param none{};
    pthread_setschedparam(thread_, SCHED_OTHER, &none);  // refused without privileges or RLIMIT_NICE
  }

 private:
  pthread_t thread_ = {};
  long id_ = 0;
};

/// An epoll set of the watched descriptors and of a doorbell, which keeps ringing until it is read.
class PosixWakeSet final : public WakeSet {
 public:
  PosixWakeSet() = default;
  PosixWakeSet(const PosixWakeSet&) = delete;
  PosixWakeSet& operator=(const PosixWakeSet&) = delete;
  ~PosixWakeSet() override {
    if (epoll_ >= 0) close(epoll_);
    if (bell_ >= 0) close(bell_);
  }
  bool works() { return epoll_ >= 0 && bell_ >= 0 && watch(bell_); }

  bool watch(int descriptor) noexcept override {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
  }
  void unwatch(int descriptor) noexcept override { epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }
  void wait(std::uint64_t timeout_ns) noexcept override {
    constexpr std::uint64_t longest_ms = 3'600'000;
    epoll_event events[8];
    const std::uint64_t ms = timeout_ns / 1'000'000 + (timeout_ns % 1'000'000 != 0 ? 1 : 0);
    epoll_wait(epoll_, events, 8, static_cast<int>(std::min(ms, longest_ms)));
  }
  void ring() noexcept override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = write(bell_, &one, sizeof one);  // full counts as rung
  }
  void quiet() noexcept override {
    std::uint64_t value;
    [[maybe_unused]] const auto ignored = read(bell_, &value, sizeof value);  // empty is fine
  }
  int descriptor() const noexcept override { return epoll_; }

 private:
  const int epoll_ = epoll_create1(EPOLL_CLOEXEC), bell_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

/// Returns the prefix of a log line. The engine puts its rank into the text: a process may hold several engines, so the
/// rank is unknown here.
std::string log_prefix(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "canele: error: ";
    case LogLevel::warning:
      return "canele: warning: ";
    default:
      return "canele: ";
  }
}

/// Puts the prefix before every line of `text`, in one buffer, so that lines of several ranks do not mix on a shared
/// terminal.
std::string log_lines(LogLevel level, std::string_view text) {
  const std::string prefix = log_prefix(level);
  std::string lines;
  while (true) {
    const auto end = text.find('\n');
    lines.append(prefix).append(text.substr(0, end)).push_back('\n');
    if (end == std::string_view::npos || end + 1 == text.size()) return lines;
    text.remove_prefix(end + 1);
  }
}

/// Reads up to `most` bytes of an open file, and finds out whether that is all.
void read_up_to(int descriptor, std::size_t most, FileText* file) {
  std::size_t have = 0;
  file->text.resize(most + 1);  // the extra byte tells whether there is more
  while (have <= most) {
    const ssize_t got = read(descriptor, file->text.data() + have, most + 1 - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) file->problem = std::strerror(errno);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  file->whole = file->problem.empty() && have <= most;
  file->text.resize(std::min(have, most));
}

/// The kernel's struct sched_attr, which glibc does not declare.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes), policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;
};

/// An alarm on a timer descriptor. Moving its time is a system call, and wakes no thread. Moving it to a later time is
/// not even that: the waiting thread finds out. In a virtual machine each change of the next timer is expensive.
class TimerAlarm final : public Alarm {
 public:
  TimerAlarm() = default;
  TimerAlarm(const TimerAlarm&) = delete;
  TimerAlarm& operator=(const TimerAlarm&) = delete;
  ~TimerAlarm() override {
    if (timer_ >= 0) close(timer_);
    if (epoll_ >= 0) close(epoll_);
  }
  bool works() { return timer_ >= 0 && epoll_ >= 0 && control(EPOLL_CTL_ADD, timer_, EPOLLIN); }

  void set(std::uint64_t ns) noexcept override {
    const std::uint64_t deadline = read_clock() + ns;
    until_.store(deadline, std::memory_order_seq_cst);
    if (deadline < armed_.load(std::memory_order_seq_cst)) arm();
  }
  bool watch(int descriptor) noexcept override {
    if (!control(EPOLL_CTL_ADD, descriptor, EPOLLONESHOT)) return false;
    heeded_ = descriptor;
    return true;
  }
  bool heed() noexcept override { return heeded_ >= 0 && control(EPOLL_CTL_MOD, heeded_, EPOLLIN | EPOLLONESHOT); }
  bool ignore() noexcept override { return heeded_ >= 0 && control(EPOLL_CTL_MOD, heeded_, EPOLLONESHOT); }
  bool has_heard() const noexcept override { return heard_; }

  void wait() noexcept override {
    for (heard_ = false; !heard_;) {
      epoll_event events[2];
      const int count = epoll_wait(epoll_, events, 2, -1);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd != timer_) heard_ = true;
      }
      if (heard_ || count < 1) continue;  // an expired timer stays readable; or a signal came
      armed_.store(never, std::memory_order_seq_cst);
      if (read_clock() >= until_.load(std::memory_order_seq_cst)) return;
      arm();
    }
  }

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  bool control(int what, int descriptor, std::uint32_t events) const noexcept {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    return epoll_ctl(epoll_, what, descriptor, &event) == 0;
  }
  /// Arms the timer. A thread that arms it for later than another thread wants at that moment arms it again.
  void arm() noexcept {
    std::uint64_t deadline = 0;
    do {
      deadline = until_.load(std::memory_order_seq_cst);
      armed_.store(deadline, std::memory_order_seq_cst);
      itimerspec when{};
      when.it_value = {static_cast<time_t>(deadline / ns_per_second), static_cast<long>(deadline % ns_per_second)};
      [[maybe_unused]] const int code = timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
      assert(code == 0);
    } while (until_.load(std::memory_order_seq_cst) < deadline);
  }

  const int timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), epoll_ = epoll_create1(EPOLL_CLOEXEC);
  int heeded_ = -1;
  bool heard_ = false;
  std::atomic<std::uint64_t> until_{never}, armed_{never};
};

/// The unit that a thread keeps off, the set it may use for that, and the set it had before.
struct KeptOff {
  int unit = -1;
  cpu_set_t set, before;
};

class PosixPlatform final : public Platform {
 public:
  std::uint64_t now_ns() noexcept override { return read_clock(); }

  std::uint64_t random() noexcept override {
    thread_local RandomBuffer buffer;
    if (buffer.left == 0 || buffer.owner != getpid()) {
      fill_random(std::as_writable_bytes(std::span(buffer.words)));
      buffer.left = buffer.words.size();
      buffer.owner = getpid();
    }
    // Taken bits are wiped: a core dump should not hold old secrets.
    return std::exchange(buffer.words[--buffer.left], 0);
  }

  const char* variable(const char* name) noexcept override { return std::getenv(name); }

  void each_variable(std::string_view prefix, const std::function<void(std::string_view)>& visit) override {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      if (text.starts_with(prefix)) visit(text);
    }
  }

  FileText read_file(const std::string& path, std::size_t most) override {
    FileText file;
    // Non-blocking: the name may be a pipe.
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    file.there = descriptor >= 0 || (errno != ENOENT && errno != ENOTDIR);
    if (descriptor < 0) {
      if (file.there) file.problem = std::strerror(errno);
      return file;
    }
    struct stat about;
    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
      file.problem = "it is not a regular file";
    } else {
      read_up_to(descriptor, most, &file);
    }
    close(descriptor);
    return file;
  }

  std::unique_ptr<SharedMemory> share_memory(std::size_t size, std::string* why) override {
    return share_posix_memory(size, why);
  }
  std::unique_ptr<SharedMemory> map_memory(const SharedMemoryName& name, std::size_t size) override {
    return map_posix_memory(name, size);
  }

  std::unique_ptr<PlatformThread> start_thread(const char* name, std::function<void()> body) override {
    auto thread = std::make_unique<PosixThread>();
    if (!thread->start(name, std::move(body))) return nullptr;
    return thread;
  }

  const void* this_thread() noexcept override {
    thread_local const char place = 0;
    return &place;
  }

  std::unique_ptr<WakeSet> make_wake_set(std::string* why) override {
    auto set = std::make_unique<PosixWakeSet>();
    if (set->works()) return set;
    *why = std::string("no descriptor for sleeping: ") + std::strerror(errno) + " (raise the limit, ulimit -n)";
    return nullptr;
  }

  void relax() noexcept override {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#else
    asm volatile("" ::: "memory");
#endif
  }

  void yield() noexcept override { sched_yield(); }

  std::uint64_t set_slice(std::uint64_t ns) noexcept override {
    SchedulingAttributes attributes;
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return 0;
    // A kernel whose time-sharing scheduler has no slices reports none.
    if (attributes.policy != SCHED_OTHER || attributes.runtime == 0) return 0;
    const std::uint64_t before = std::exchange(attributes.runtime, ns);
    return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0 ? before : 0;
  }

  void use_idle_cores_only() noexcept override {
    const sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);
  }

  void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
            std::uint64_t timeout_ns) noexcept override {
    // Private: the word belongs to this process. Words shared between processes are a driver's affair.
    timespec timeout;
    timeout.tv_sec = static_cast<time_t>(timeout_ns / ns_per_second);
    timeout.tv_nsec = static_cast<long>(timeout_ns % ns_per_second);
    futex(word, FUTEX_WAIT_PRIVATE, expected, timeout_ns == ~std::uint64_t{0} ? nullptr : &timeout);
  }

  void unpark(const std::atomic<std::uint32_t>& word) noexcept override {
    futex(word, FUTEX_WAKE_PRIVATE, std::numeric_limits<std::int32_t>::max(), nullptr);
  }

  std::unique_ptr<Alarm> make_alarm() override {
    auto alarm = std::make_unique<TimerAlarm>();
    if (alarm->works()) return alarm;
    return Platform::make_alarm();
  }

  bool has_system_threads() const noexcept override { return true; }
  int current_unit() noexcept override { return sched_getcpu(); }

  bool move_to_unit(int unit) noexcept override {
    cpu_set_t before, there;
    if (unit < 0 || unit >= CPU_SETSIZE || sched_getaffinity(0, sizeof before, &before) != 0) return false;
    if (!CPU_ISSET(unit, &before)) return false;  // the thread was pinned elsewhere
    CPU_ZERO(&there);
    CPU_SET(unit, &there);
    const bool moved = sched_setaffinity(0, sizeof there, &there) == 0;
    return sched_setaffinity(0, sizeof before, &before) == 0 && moved;
  }

  int share_of_units(unsigned share) noexcept override {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
    const auto count = static_cast<unsigned>(CPU_COUNT(&set));
    if (count < processors()) return -1;
    unsigned left = share % count;
    for (int unit = 0; unit < CPU_SETSIZE; ++unit) {
      if (CPU_ISSET(unit, &set) && left-- == 0) return unit;
    }
    return -1;
  }

  bool keep_off_unit(int unit) noexcept override {
    thread_local KeptOff kept;
    cpu_set_t now;
    if (unit >= CPU_SETSIZE || sched_getaffinity(0, sizeof now, &now) != 0) return false;
    // If other code has pinned the thread meanwhile, that pinning holds.
    const bool ours = kept.unit >= 0 && CPU_EQUAL(&now, &kept.set);
    const cpu_set_t before = ours ? kept.before : now;
    cpu_set_t wanted = before;
    if (unit >= 0) CPU_CLR(unit, &wanted);
    kept = {unit, wanted, before};
    if (CPU_COUNT(&wanted) == 0 || CPU_EQUAL(&wanted, &now)) return false;
    return sched_setaffinity(0, sizeof wanted, &wanted) == 0;
  }

  unsigned processors() noexcept override { return static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)); }

  long process() noexcept override { return getpid(); }

  void log(LogLevel level, std::string_view text) noexcept override {
    if (ltask::log_to_sink(level, text)) return;
    try {
      ltask::write_quietly(STDERR_FILENO, log_lines(level, text));
    } catch (const std::bad_alloc&) {
      ltask::write_quietly(STDERR_FILENO, text);
    }
  }
};

}  // namespace

Platform& posix_platform() {
  // Never destroyed: threads that outlive main() may still log. Built at first use, so loading the library has no
  // effect.
  alignas(PosixPlatform) static unsigned char memory[sizeof(PosixPlatform)];
  static Platform* const platform = new (memory) PosixPlatform;
  return *platform;
}

}  // namespace canele
