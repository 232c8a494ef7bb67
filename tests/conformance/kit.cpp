// SPDX-License-Identifier: BSD-3-Clause
//
// Registers the tests of a driver, runs each, and makes the table of results.
//
// A child opens the driver once, before its first test, to learn which capabilities it declares.
#include "tests/conformance/kit.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "drivers/net/socket.hpp"
#include "drivers/shm/fd_exchange.hpp"
#include "drivers/tcp/address.hpp"
#include "tests/conformance/launch.hpp"
#include "tests/conformance/suite.hpp"

namespace canele::conformance {
namespace {

struct Subject {
  std::string variant;
  const drivers::DriverFactory* factory;
  Options options;
  std::optional<Capabilities> can;  ///< once the child has asked for them
  std::string trouble;              ///< why the child could not ask
  std::string unavailable;
};

void set_environment(const Options& options) {
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
}

/// Runs one rank from start to end.
bool be_rank(const Subject& subject, const TestCase& test, Rank rank, Rank size, int channel, Place& place) {
  set_environment(subject.options);
  const std::string where = subject.variant + ", rank " + std::to_string(rank);
  testing::ScopedTrace trace(__FILE__, __LINE__, where);
  Job job(*subject.factory, subject.options, rank, size, channel, place);
  job.shares_process = test.threads;
  if (!job.start(test.adjust ? test.adjust : [](Node&) {})) return false;
  test.body(job);
  return job.finish();
}

/// A child's answer: why the driver cannot run here, or its capabilities.
struct Declared {
  char unavailable[400];
  Capabilities can;
};

bool declare(const Subject& subject, int channel, Place& place) {
  set_environment(subject.options);
  Message message;
  Declared declared = {};
  static_assert(sizeof declared <= sizeof message.bytes);
  std::snprintf(declared.unavailable, sizeof declared.unavailable, "%s", subject.factory->unavailable().c_str());
  message.kind = Message::answer;
  message.size = sizeof declared;
  if (declared.unavailable[0] == 0) {
    Job job(*subject.factory, subject.options, 0, 1, channel, place);
    if (!job.start({})) return false;
    declared.can = job.can();
    EXPECT_EQ(job.can().name, subject.factory->name);
    job.node.close();
    if (testing::Test::HasFailure()) return false;
  }
  std::memcpy(message.bytes, &declared, sizeof declared);
  return post(channel, message);
}

void ask(Subject& subject) {
  if (subject.can || !subject.trouble.empty() || !subject.unavailable.empty()) return;
  Launch what;
  what.ranks = 1;
  what.body = [&](int, int channel, Place& place) { return declare(subject, channel, place); };
  const Outcome outcome = launch(what);
  Declared declared = {};
  if (!outcome.problems.empty() || outcome.answer.size() != sizeof declared) {
    subject.trouble = outcome.problems.empty() ? "it did not answer" : outcome.problems[0];
    return;
  }
  std::memcpy(&declared, outcome.answer.data(), sizeof declared);
  declared.unavailable[sizeof declared.unavailable - 1] = 0;
  subject.unavailable = declared.unavailable;
  declared.can.name = subject.factory->name;  // the pointer was valid in the child only
  if (subject.unavailable.empty()) subject.can = declared.can;
}

#define CANELE_MUST(condition) EXPECT_TRUE(condition) << "our driver must declare this: see known_drivers.cpp"
void check_declared(const KnownDriver& must, const Subject& subject) {
  const Capabilities& can = *subject.can;
  EXPECT_EQ(must.name, subject.factory->name);
  EXPECT_GE(can.max_inline, must.min_inline);
  EXPECT_GE(can.max_packet, must.min_packet);
  CANELE_MUST(can.memory_only == must.memory_only);
  CANELE_MUST(can.reserves || !must.reserves);
  CANELE_MUST(can.bulk_stream || !must.bulk_stream);
  CANELE_MUST(can.get || !must.get);
  CANELE_MUST(can.put || !must.put);
  CANELE_MUST(can.rma_any_thread || !must.rma_any_thread);
  CANELE_MUST(can.shared_lines >= must.shared_lines);
  CANELE_MUST(can.wake_up == must.wake_up || must.wake_up == drivers::WakeUp::none);
  CANELE_MUST(can.reaches_self || !must.self);
  CANELE_MUST(can.reaches_local || !must.local);
  CANELE_MUST(can.reaches_remote || !must.remote);
  CANELE_MUST(can.detects_failure || !must.detects_failure);
  CANELE_MUST(can.max_instances == must.max_instances);
  const Options& options = subject.options;
  EXPECT_TRUE(options.authenticates || !must.authenticates) << "reject_secret may not be skipped";
  EXPECT_TRUE(options.dial || !must.dials) << "reject_version and unauthenticated may not be skipped";
  EXPECT_TRUE(!options.slow || must.slow) << "it may not be declared slow";
  EXPECT_TRUE(!options.parts_survivors || must.parts_survivors) << "a death may not part its survivors";
  EXPECT_TRUE(options.skips.empty()) << "our own drivers skip nothing";
}
#undef CANELE_MUST

class KitTest final : public testing::Test {
 public:
  KitTest(std::shared_ptr<Subject> subject, const TestCase& test) : subject_(std::move(subject)), test_(test) {}

  void TestBody() override {
    ask(*subject_);
    if (!subject_->trouble.empty()) FAIL() << "open() does not work: " << subject_->trouble;
    if (!subject_->unavailable.empty()) GTEST_SKIP() << "not on this machine: " << subject_->unavailable;
    const KnownDriver* const known = known_driver(subject_->variant);
    if (known != nullptr && test_.name == "declares") check_declared(*known, *subject_);
    std::string why = why_not();
    if (why.empty() && known != nullptr && known->cannot == test_.name) why = known->because;
    if (!why.empty()) GTEST_SKIP() << why;
    Launch what;
    what.ranks = is_only_self(*subject_->can) ? 1 : test_.ranks;
    if (subject_->options.slow && test_.slow_ranks > 0) what.ranks = test_.slow_ranks;
    what.threads = test_.threads;
    what.leaves_files = subject_->options.leaves_files;
    what.body = [&](int rank, int channel, Place& place) {
      return be_rank(*subject_, test_, rank, what.ranks, channel, place);
    };
    for (const std::string& problem : launch(what).problems) ADD_FAILURE() << problem;
  }

 private:
  std::string why_not() const {
    const auto found = subject_->options.skips.find(std::string(test_.name));
    if (found != subject_->options.skips.end()) return found->second;
    return test_.not_for == nullptr ? "" : test_.not_for(*subject_->can, subject_->options);
  }

  std::shared_ptr<Subject> subject_;
  const TestCase& test_;
};

/// Collects results; at the end prints the table and writes one file per driver.
class Table final : public testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (part.skipped()) reason_ = part.message();
  }
  void OnTestEnd(const testing::TestInfo& info) override {
    const testing::TestResult& result = *info.result();
    const char* const verdict = result.Failed() ? "FAILED" : result.Skipped() ? "skipped" : "passed";
    rows_[info.test_suite_name()].push_back({info.name(), verdict, result.elapsed_time(), std::exchange(reason_, {})});
  }
  void OnTestProgramEnd(const testing::UnitTest&) override {
    for (const auto& [variant, rows] : rows_) {
      print(stdout, variant, rows);
      write(variant, rows);
    }
    std::fflush(stdout);
  }

 private:
  struct Row {
    std::string test, verdict;
    long ms;
    std::string reason;
  };
  static void print(std::FILE* out, const std::string& variant, const std::vector<Row>& rows) {
    std::fprintf(out, "%-16s %-24s %-8s %8s\n", "driver", "test", "result", "ms");
    for (const Row& row : rows) {
      std::fprintf(out, "%-16s %-24s %-8s %8ld%s%s\n", variant.c_str(), row.test.c_str(), row.verdict.c_str(), row.ms,
                   row.reason.empty() ? "" : "  ", row.reason.c_str());
    }
  }
  static void write(const std::string& variant, const std::vector<Row>& rows) {
    const char* const build = std::getenv("CANELE_TEST_BUILD");
    if (build == nullptr) return;
    const std::filesystem::path directory = std::filesystem::path(build) / "results" / "conformance";
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    std::ofstream out(directory / (variant + ".tsv"));
    for (const Row& row : rows) {
      out << variant << '\t' << row.test << '\t' << row.verdict << '\t' << row.ms << '\t' << row.reason << '\n';
    }
  }

  std::map<std::string, std::vector<Row>> rows_;
  std::string reason_;
};

}  // namespace

bool add_driver(std::string_view variant, const drivers::DriverFactory& factory, Options options) {
  const auto subject =
      std::make_shared<Subject>(Subject{std::string(variant), &factory, std::move(options), {}, {}, {}});
  for (const auto tests : {connection_tests(), exchange_tests(), flow_tests(), copy_tests(), failure_tests()}) {
    for (const TestCase& test : tests) {
      testing::RegisterTest(subject->variant.c_str(), std::string(test.name).c_str(), nullptr, nullptr, __FILE__,
                            __LINE__, [subject, &test]() -> testing::Test* { return new KitTest(subject, test); });
    }
  }
  return true;
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new Table);
  return RUN_ALL_TESTS();
}

int dial_tcp(std::span<const std::byte> address) {
  drivers::tcp::PeerAddress where;
  if (!drivers::tcp::unpack_address(address, &where)) return -1;
  const auto list = drivers::tcp::candidates(where, drivers::net::host_id());
  if (list.empty()) return -1;
  drivers::net::UniqueFd fd(::socket(list[0].v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), list[0].address(), list[0].size()) != 0) return -1;
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd.release();
}

int dial_shm(std::span<const std::byte> address) {
  drivers::shm::AddressForm form;
  return drivers::shm::unpack_address(address, &form) ? drivers::shm::connect_to(form.name).release() : -1;
}

}  // namespace canele::conformance
