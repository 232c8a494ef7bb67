// SPDX-License-Identifier: BSD-3-Clause
//
// Finding the launcher, the job of one rank, and the waiting that PMIx calls are wrapped in.
//
// The threads are the platform's. The environment is the test's own. Only the hanging server needs the real one,
// because libpmix reads it by itself.
#include "comm/bootstrap/bootstrap.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "comm/bootstrap/bounded.hpp"
#include "comm/bootstrap/pmix_shared.hpp"
#include "tests/unit/ltask/real_platform.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t patience = 30'000 * ms;

/// The real platform with another environment. It ends the threads that the code under test has abandoned.
class TestPlatform final : public test::RealPlatform {
 public:
  ~TestPlatform() override {
    while (!threads_.empty()) delete *threads_.begin();
  }
  std::map<std::string, std::string> variables;
  std::string logged;

  const char* variable(const char* name) noexcept override {
    const auto entry = variables.find(name);
    return entry == variables.end() ? nullptr : entry->second.c_str();
  }
  void each_variable(std::string_view, const std::function<void(std::string_view)>&) override {}
  void log(LogLevel, std::string_view text) noexcept override { logged += text; }
  std::unique_ptr<PlatformThread> start_thread(const char* name, std::function<void()> body) override {
    return std::make_unique<Thread>(*this, RealPlatform::start_thread(name, std::move(body)));
  }

 private:
  struct Thread final : PlatformThread {
    Thread(TestPlatform& platform, std::unique_ptr<PlatformThread> thread) : owner(platform), real(std::move(thread)) {
      owner.threads_.insert(this);
    }
    ~Thread() override { owner.threads_.erase(this); }
    long native_id() const override { return real->native_id(); }
    TestPlatform& owner;
    std::unique_ptr<PlatformThread> real;
  };

  std::set<Thread*> threads_;
};

struct Answer {
  int times = 0;
  bool ok = false;
  Blob blob;
  std::string why;
};

Bootstrap::Deliver into(Answer& answer) {
  return [&answer](bool ok, Blob blob, std::string why) {
    ++answer.times;
    answer.ok = ok;
    answer.blob = std::move(blob);
    answer.why = std::move(why);
  };
}

TEST(Singleton, IsAJobOfItsOwn) {
  TestPlatform platform;
  std::string why;
  const auto one = join_job(platform, patience, &why);
  const auto other = make_singleton(platform);
  ASSERT_NE(one, nullptr) << why;
  EXPECT_EQ(one->name(), "singleton");
  EXPECT_EQ(one->rank(), 0);
  EXPECT_EQ(one->size(), 1);
  EXPECT_EQ(one->local_rank(), 0);
  EXPECT_EQ(one->local_size(), 1);
  EXPECT_NE(one->job(), other->job());
  EXPECT_FALSE(one->host().empty());
  EXPECT_TRUE(one->fence(0, &why));
  one->finalize();
}

TEST(Singleton, KeepsWhatIsPut) {
  TestPlatform platform;
  const auto job = make_singleton(platform);
  std::string why;
  const Blob blob = {std::byte{1}, std::byte{0}, std::byte{2}};
  ASSERT_TRUE(job->put("key", blob, &why)) << why;
  ASSERT_TRUE(job->commit_and_fence(0, &why));
  Answer found, missing, unknown_rank;
  job->get(0, "key", patience, into(found));
  job->get(0, "other", patience, into(missing));
  job->get(1, "key", patience, into(unknown_rank));
  EXPECT_TRUE(found.times == 1 && found.ok && found.blob == blob) << found.why;
  EXPECT_TRUE(missing.times == 1 && !missing.ok);
  EXPECT_EQ(missing.why, "nothing was put under 'other'");
  EXPECT_TRUE(unknown_rank.times == 1 && !unknown_rank.ok);
  EXPECT_EQ(unknown_rank.why, "there is no rank 1 in a job of one rank");
}

TEST(Singleton, RejectsWhatNoLauncherWouldTake) {
  TestPlatform platform;
  const auto job = make_singleton(platform);
  std::string why;
  EXPECT_TRUE(job->put("largest", Blob(65'536), &why));
  EXPECT_FALSE(job->put("larger", Blob(65'537), &why));
  EXPECT_EQ(why, "'larger' has 65537 bytes; at most 65536 can be published");
  EXPECT_FALSE(job->put("", {}, &why));
  EXPECT_FALSE(job->put(std::string(256, 'k'), {}, &why));
  EXPECT_EQ(why, "a key has 1 to 255 characters, this one 256");
}

TEST(Singleton, AbortSaysWhyAndReturns) {
  TestPlatform platform;
  make_singleton(platform)->abort(3, "no good");
  EXPECT_EQ(platform.logged, "the job ends with code 3: no good");
}

TEST(JoinJob, NeverIgnoresALauncher) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"PMI_FD"}, "its variables are malformed: PMI_FD=0, PMI_RANK is not set, PMI_SIZE is not set"},
      {{"PMI_FD", "MPI_LOCALNRANKS", "SLURM_PROCID", "SLURM_STEP_ID"}, "its variables are malformed"},
      {{"PMI_FD", "PMI_JOBID"}, "started by srun with PMI-2 (PMI_FD is set): use srun --mpi=pmix"},
      {{"PMI_RANK"}, "(PMI_RANK is set)"},
      {{"PMI_SIZE"}, "(PMI_SIZE is set)"},
      {{"MPI_LOCALNRANKS"}, "(MPI_LOCALNRANKS is set)"},
      {{"OMPI_COMM_WORLD_RANK"}, "its PMIx variables (PMIX_NAMESPACE, PMIX_RANK) are missing"},
      {{"OMPI_COMM_WORLD_SIZE"}, "mpirun of Open MPI"},
      {{"SLURM_PROCID", "SLURM_STEP_ID"}, "use srun --mpi=pmix"},
      {{"SLURM_PROCID", "SLURM_STEP_ID", "PMI_FD"}, "use srun --mpi=pmix"},
      {{"PMIX_NAMESPACE"}, "PMIX_NAMESPACE and PMIX_RANK are not both set"},
      {{"PMIX_RANK"}, "PMIX_NAMESPACE and PMIX_RANK are not both set"},
      {{"PMIX_SERVER_URI2"}, "PMIX_NAMESPACE and PMIX_RANK are not both set"}};
  for (const auto& [names, expected] : cases) {
    TestPlatform platform;
    for (const std::string& name : names) platform.variables[name] = "0";
    std::string why;
    EXPECT_EQ(join_job(platform, patience, &why), nullptr) << names[0];
    EXPECT_NE(why.find(expected), std::string::npos) << names[0] << ": " << why;
  }
}

TEST(JoinJob, AnAllocationIsNoLauncher) {
  TestPlatform platform;  // inside salloc, or in a batch script
  platform.variables = {{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "0"}, {"PMIX_MCA_gds", "hash"}};
  std::string why;
  EXPECT_NE(join_job(platform, patience, &why), nullptr) << why;
}

/// A server that accepts connections and never answers: libpmix alone would wait for ever.
std::string hanging_server() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener, 5) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return {};
  return "server.0;tcp4://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

void join_hanging_server() {
  TestPlatform platform;
  platform.variables = {{"PMIX_NAMESPACE", "hung"}, {"PMIX_RANK", "0"}};
  for (const auto& [name, value] : platform.variables) setenv(name.c_str(), value.c_str(), 1);
  const std::string server = hanging_server();
  for (const char* name :
       {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"})
    setenv(name, server.c_str(), 1);
  std::string why;
  const auto job = join_job(platform, 200 * ms, &why);
  static_cast<void>(std::fprintf(stderr, "%s\n", why.c_str()));
  std::_Exit(job == nullptr ? 3 : 0);  // the thread inside libpmix stays there
}

TEST(JoinJob, EndsWhenTheServerHangs) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(join_hanging_server(), testing::ExitedWithCode(3), "of job hung, does not answer|this build has no PMIx");
}

TEST(Bounded, ReturnsWhenTheCallDoes) {
  const auto value = std::make_shared<int>(0);
  EXPECT_EQ(run_bounded(posix_platform(), "test", patience, [value] { *value = 7; }), Bounded::ended);
  EXPECT_EQ(*value, 7);
}

TEST(Bounded, GivesUpOnACallThatHangs) {
  struct Gate {
    Signal changed{posix_platform()};
    std::atomic<bool> open{false}, passed{false};
  };
  TestPlatform platform;
  const auto gate = std::make_shared<Gate>();
  const Bounded how = run_bounded(platform, "test", 20 * ms, [gate] {
    gate->changed.wait(Signal::forever, [&] { return gate->open.load(); });
    gate->passed = true;
    gate->changed.change();
  });
  EXPECT_EQ(how, Bounded::late);
  gate->open = true;
  gate->changed.change();
  EXPECT_TRUE(gate->changed.wait(posix_platform().now_ns() + patience, [&] { return gate->passed.load(); }));
}

/// A system without free threads, and with a clock that stands still: code that waits for its limit would wait for
/// ever.
struct WithoutThreads final : test::RealPlatform {
  std::uint64_t now_ns() noexcept override { return 1; }
  std::unique_ptr<PlatformThread> start_thread(const char*, std::function<void()>) override { return nullptr; }
};

TEST(Bounded, SaysAtOnceThatThereIsNoThread) {
  WithoutThreads platform;
  const auto calls = std::make_shared<int>(0);
  EXPECT_EQ(run_bounded(platform, "test", patience, [calls] { ++*calls; }), Bounded::no_thread);
  EXPECT_EQ(*calls, 0);
  EXPECT_EQ(run_bounded_or_here(platform, "test", patience, [calls] { ++*calls; }), Bounded::ended);
  EXPECT_EQ(*calls, 1);
}

void join_without_threads() {
  struct Platform final : test::RealPlatform {
    const char* variable(const char* name) noexcept override {
      const std::string_view what = name;
      return what == "PMIX_NAMESPACE" ? "job" : what == "PMIX_RANK" ? "0" : nullptr;
    }
    std::unique_ptr<PlatformThread> start_thread(const char*, std::function<void()>) override { return nullptr; }
  } platform;
  std::string why;
  const auto job = join_job(platform, Signal::forever, &why);
  static_cast<void>(std::fprintf(stderr, "%s\n", why.c_str()));
  std::_Exit(job == nullptr ? 3 : 0);
}

TEST(JoinJob, SaysAtOnceThatThereIsNoThread) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(join_without_threads(), testing::ExitedWithCode(3),
              "of job job, cannot be asked: the system starts no more threads|this build has no PMIx");
}

TEST(Bounded, DeadlinesDoNotOverflow) { EXPECT_EQ(deadline_after(posix_platform(), Signal::forever), Signal::forever); }

/// Shared with its clock running; counts how often the launcher is asked.
class Questions : public testing::Test {
 protected:
  void SetUp() override {
    shared_->ask_launcher = [this](std::uint64_t number, int, const std::string&, std::uint64_t) {
      ++asked_;
      if (asked_ < answer_at_) return shared_->try_later(number);
      shared_->answer(number, true, {std::byte{5}}, "");
    };
    clock_ = posix_platform().start_thread("clock", [this] { shared_->run_clock(); });
  }
  void TearDown() override { stop(); }
  void stop() {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->stopping = true;
    }
    shared_->changed.change();
    clock_.reset();
  }
  Bootstrap::Deliver deliver() {
    return [this](bool ok, Blob, std::string why) {
      {
        const std::lock_guard lock(mutex_);
        ok_ = ok;
        why_ = std::move(why);
      }
      ++delivered_;
      done_.change();
    };
  }
  bool wait_delivered(int times) {
    return done_.wait(posix_platform().now_ns() + patience, [&] { return delivered_ >= times; });
  }
  static std::uint64_t in(std::uint64_t time) { return posix_platform().now_ns() + time; }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>(posix_platform());
  std::unique_ptr<PlatformThread> clock_;
  Signal done_{posix_platform()};
  std::atomic<int> asked_{0}, delivered_{0};
  int answer_at_ = 1'000'000;
  std::mutex mutex_;  ///< guards the members below
  bool ok_ = false;
  std::string why_;
};

TEST_F(Questions, EndAtTheirDeadlineExactlyOnce) {
  const std::uint64_t number = shared_->ask({3, "address", deliver()}, in(20 * ms));
  ASSERT_TRUE(wait_delivered(1));
  EXPECT_FALSE(ok_);
  EXPECT_EQ(why_, "rank 3 has not published 'address' in the time given");
  shared_->answer(number, true, {}, "");  // the launcher, too late
  shared_->try_later(number);
  stop();
  EXPECT_EQ(delivered_, 1);
}

TEST_F(Questions, AreAskedAgain) {
  answer_at_ = 3;
  shared_->try_later(shared_->ask({3, "address", deliver()}, in(patience)));
  ASSERT_TRUE(wait_delivered(1));
  EXPECT_TRUE(ok_) << why_;
  EXPECT_EQ(asked_, 3);
}

TEST_F(Questions, ToTheDeadAreRejected) {
  int told = 0;
  shared_->died = [&told](int rank) { told += rank; };
  shared_->ask({3, "a", deliver()}, in(patience));
  shared_->ask({3, "b", deliver()}, in(patience));
  shared_->ask({4, "a", deliver()}, in(patience));
  shared_->report_death(3);
  shared_->report_death(3);
  EXPECT_EQ(told, 3) << "told once";
  EXPECT_EQ(delivered_, 2);
  EXPECT_EQ(why_, "rank 3 has died");
  shared_->report_lost_launcher();
  EXPECT_EQ(delivered_, 3);
  EXPECT_EQ(why_, "the connection to the launcher is lost");
}

TEST_F(Questions, ManyAtOnceEndInAnyOrder) {
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 1000; ++i)
    numbers.push_back(shared_->ask({i, "key", deliver()}, in(i % 2 == 0 ? 10 * ms : patience)));
  for (std::size_t i = 1; i < numbers.size(); i += 2) shared_->answer(numbers[i], true, {}, "");
  ASSERT_TRUE(wait_delivered(1000));
  stop();
  EXPECT_EQ(delivered_, 1000);
  EXPECT_TRUE(shared_->questions.empty());
  EXPECT_TRUE(shared_->by_time.empty());
}

}  // namespace
}  // namespace canele::comm
