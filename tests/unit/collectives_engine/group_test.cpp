// SPDX-License-Identifier: BSD-3-Clause
//
// Groups, arguments, what a call allocates and builds, and what reports say of collectives. One thread.
//
// A malloc of this program's own counts memory; sanitizers have their own malloc, so memory is not counted there.
#include <string_view>

#include "comm/api/collective_call.hpp"
#include "comm/collectives/override.hpp"
#include "comm/diagnose/hang_collect.hpp"
#include "ranks.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANELE_COUNTS_MEMORY 0
#else
#define CANELE_COUNTS_MEMORY 1
#endif

namespace {
std::atomic<long> allocated_pieces{0};
}

#if CANELE_COUNTS_MEMORY
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void* malloc(size_t size) {
  allocated_pieces.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  allocated_pieces.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
}
#endif

namespace canele::test {
namespace {

bool told(std::string_view words) {
  const bool yes = std::string_view(canele_error_detail()).find(words) != std::string_view::npos;
  EXPECT_TRUE(yes) << "\"" << words << "\" is not in: " << canele_error_detail();
  return yes;
}

class Groups : public testing::Test {
 protected:
  int create(const char* label, std::vector<int> list, canele_group_t** group) {
    return canele_group_create(ranks_.job.handle(0), label, list.data(), list.size(), group);
  }
  Ranks ranks_{job_of("shm", 3)};
  canele_group_t* made_ = nullptr;
};

TEST_F(Groups, SayWhatIsWrongWithTheirRanksAndLabels) {
  EXPECT_EQ(create("", {0}, &made_), CANELE_EINVAL);
  EXPECT_TRUE(told("1 to 40 bytes, not 0"));
  EXPECT_EQ(create(std::string(41, 'x').c_str(), {0}, &made_), CANELE_EINVAL);
  const int none = 0;
  EXPECT_EQ(canele_group_create(ranks_.job.handle(0), "g", &none, 0, &made_), CANELE_EINVAL);
  EXPECT_EQ(create("g", {0, 3}, &made_), CANELE_ERANK);
  EXPECT_TRUE(told("rank 3: ranks run from 0 to 2"));
  EXPECT_EQ(create("g", {-1, 0}, &made_), CANELE_ERANK);
  EXPECT_EQ(create("g", {0, 1, 0}, &made_), CANELE_EINVAL);
  EXPECT_TRUE(told("rank 0 is named twice"));
  EXPECT_EQ(create("g", {1, 2}, &made_), CANELE_EINVAL);
  EXPECT_TRUE(told("the list lacks rank 0; expected: a list with the calling rank"));
  EXPECT_EQ(create("test", {0}, &made_), CANELE_EBUSY);
  EXPECT_EQ(canele_group_create(nullptr, "g", nullptr, 0, &made_), CANELE_EINVAL);
  canele_session_t* session = nullptr;
  EXPECT_EQ(canele_session_open(ranks_.job.handle(0), "group:mine", 0, &session), CANELE_EINVAL);
  EXPECT_TRUE(told("begin with \"group:\""));
}

TEST_F(Groups, MayBeMadeAgainAndAreBusyWhileInUse) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(create("again", {2, 0}, &made_), CANELE_OK) << canele_error_detail();
    EXPECT_EQ(canele_group_rank(made_), 1);
    EXPECT_EQ(canele_group_size(made_), 2);
    canele_group_t* other = nullptr;
    const int list[] = {2, 0};
    ASSERT_EQ(canele_group_create(ranks_.job.handle(2), "again", list, 2, &other), CANELE_OK);
    canele_request_t here{}, there{};
    ASSERT_EQ(canele_ibarrier(made_, nullptr, &here), CANELE_OK);
    EXPECT_EQ(canele_group_destroy(made_), CANELE_EBUSY);
    EXPECT_EQ(canele_ibarrier(made_, nullptr, &here), CANELE_ESTATE);
    ASSERT_EQ(canele_ibarrier(other, nullptr, &there), CANELE_OK);
    ASSERT_TRUE(ranks_.job.finish(here) && ranks_.job.finish(there));
    EXPECT_EQ(canele_group_destroy(made_), CANELE_OK);
    EXPECT_EQ(canele_group_destroy(other), CANELE_OK);
  }
  EXPECT_EQ(canele_group_destroy(nullptr), CANELE_OK);
}

TEST_F(Groups, CallsSayWhatIsWrongWithTheirArguments) {
  canele_group_t* const group = ranks_.group(0);
  canele_request_t request{};
  int word = 0;
  canele_operator_t op{};
  EXPECT_EQ(canele_operator_of(CANELE_BAND, CANELE_DOUBLE, &op), CANELE_EINVAL);
  EXPECT_TRUE(told("there is no CANELE_BAND of CANELE_DOUBLE"));
  EXPECT_EQ(canele_operator_of(static_cast<canele_operation>(99), CANELE_DOUBLE, &op), CANELE_EINVAL);
  ASSERT_EQ(canele_operator_of(CANELE_SUM, CANELE_INT32, &op), CANELE_OK);
  EXPECT_EQ(canele_ibarrier(nullptr, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_ibarrier(group, nullptr, nullptr), CANELE_EINVAL);
  EXPECT_EQ(canele_ibcast(group, &word, 4, 3, nullptr, &request), CANELE_ERANK);
  EXPECT_TRUE(told("root 3: positions of this group run from 0 to 2"));
  EXPECT_EQ(canele_ibcast(group, nullptr, 4, 0, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_ireduce(group, CANELE_IN_PLACE, &word, 1, &op, 1, nullptr, &request), CANELE_EINVAL);
  EXPECT_TRUE(told("CANELE_IN_PLACE is for the root"));
  EXPECT_EQ(canele_iallreduce(group, &word, nullptr, 1, &op, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_iallreduce(group, &word, &word, ~std::size_t{0} / 2, &op, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_iallreduce(group, &word, &word, 1, nullptr, nullptr, &request), CANELE_EINVAL);
  const canele_parts_t four{4, nullptr, nullptr}, five{5, nullptr, nullptr};
  char parts[15] = {};
  EXPECT_EQ(canele_igather(group, &word, 4, parts, nullptr, 0, nullptr, &request), CANELE_EINVAL);
  EXPECT_EQ(canele_igather(group, &word, 4, parts, &five, 0, nullptr, &request), CANELE_EINVAL);
  EXPECT_TRUE(told("has 4 bytes, but its part at the root has 5"));
  EXPECT_EQ(canele_ialltoall(group, parts, &four, parts, &five, nullptr, &request), CANELE_EINVAL);
  canele_collective_options_t options = options_of(CANELE_ALGORITHM_RING);
  EXPECT_EQ(canele_ibarrier(group, &options, &request), CANELE_EINVAL);
  EXPECT_TRUE(told("expected for barrier: ")) << "and which";
  options = options_of(CANELE_ALGORITHM_K_NOMIAL);
  options.radix = 65;
  EXPECT_EQ(canele_ibcast(group, &word, 4, 0, &options, &request), CANELE_EINVAL);
  options = {};
  EXPECT_EQ(canele_ibarrier(group, &options, &request), CANELE_EINVAL);
  EXPECT_TRUE(told("struct_size"));
  EXPECT_EQ(ranks_.job.engine(0).sessions.pending(), 0u) << "nothing was begun";
}

TEST_F(Groups, BuildAScheduleOnceForCallsThatAreAlike) {
  auto& group = comm::api::group_of(ranks_.group(0));
  const std::uint64_t before = group.schedules.built();
  const auto all_of = [&](std::size_t length) {
    Everywhere all(ranks_, {Op::bcast, 3, length});
    all.start_all();
    all.finish("bcast");
  };
  for (int i = 0; i < 50; ++i) {
    for (const std::size_t length : {10u, 20u, 30u}) all_of(length);
  }
  EXPECT_EQ(group.schedules.built() - before, 3u);
  for (std::size_t length = 0; length < 100; ++length) all_of(length);  // more than are cached
  EXPECT_GE(group.schedules.built() - before, 100u);
}

TEST_F(Groups, BuildAScheduleOnceForBlocksThatAreAlike) {
  auto& group = comm::api::group_of(ranks_.group(0));
  const std::uint64_t before = group.schedules.built();
  for (int call = 0; call < 50; ++call) {
    std::array<std::size_t, 3> lengths{8, 16, 24};  // each call has its own array
    std::array<std::array<char, 48>, 3> inputs{}, outputs{};
    std::array<canele_request_t, 3> requests{};
    const canele_parts_t parts{0, lengths.data(), nullptr};
    for (std::size_t r = 0; r < 3; ++r) {
      inputs[r].fill(static_cast<char>('a' + r));
      ASSERT_EQ(canele_iallgather(ranks_.group(static_cast<int>(r)), inputs[r].data(), outputs[r].data(), &parts,
                                  nullptr, &requests[r]),
                CANELE_OK)
          << canele_error_detail();
    }
    for (const canele_request_t& request : requests) ASSERT_TRUE(ranks_.job.finish(request));
    for (const auto& output : outputs) {
      EXPECT_EQ(std::string(output.data(), 48), std::string(8, 'a') + std::string(16, 'b') + std::string(24, 'c'));
    }
  }
  EXPECT_EQ(group.schedules.built() - before, 1u);
}

TEST_F(Groups, ACallAllocatesABoundedNumberOfPieces) {
  if (CANELE_COUNTS_MEMORY == 0) GTEST_SKIP() << "a sanitizer has its own malloc";
  const auto pieces_of = [&](const Case& one) {
    Everywhere all(ranks_, one);
    for (int rank = 1; rank < 3; ++rank) all.start(rank);
    const long before = allocated_pieces;
    all.start(0);
    const long pieces = allocated_pieces - before;
    all.finish("allocations");
    return pieces;
  };
  for (const Op op : {Op::barrier, Op::bcast, Op::allreduce, Op::alltoall, Op::scan}) {
    Case one{op, 3, 100};
    one.commutes = true;
    for (int i = 0; i < 5; ++i) pieces_of(one);
    EXPECT_LE(pieces_of(one), 1) << "a run is one piece; " << op_names[static_cast<int>(op)];
  }
}

/// Rank 1 calls first, so that rank 0 need not wait for it.
TEST(BlockingCalls, AllocateNothing) {
  if (CANELE_COUNTS_MEMORY == 0) GTEST_SKIP() << "a sanitizer has its own malloc";
  Ranks ranks(job_of("shm", 2));
  Everywhere first(ranks, {Op::barrier, 2});
  first.start_all();
  first.finish("they are connected");
  canele_collective_options_t blocking = options_of(0);
  blocking.blocking = 1;
  const auto pieces_of = [&](const Case& one) {
    Everywhere all(ranks, one);
    all.start(1);
    for (int i = 0; i < 10; ++i) ranks.job.step_all();
    const long before = allocated_pieces;
    const int code = all.side(0).start(ranks.group(0), &blocking, nullptr);
    const long pieces = allocated_pieces - before;
    EXPECT_EQ(code, CANELE_OK);
    EXPECT_TRUE(ranks.job.until([&] { return all.done(1); }));
    EXPECT_EQ(all.side(0).check() + all.side(1).check(), "");
    return pieces;
  };
  for (int op = 0; op < op_count; ++op) {
    for (const int root : {0, 1}) {
      const Case one{static_cast<Op>(op), 2, 1, root};
      for (int i = 0; i < 5; ++i) pieces_of(one);
      EXPECT_EQ(pieces_of(one), 0) << op_names[op] << ", root " << root;
    }
  }
}

TEST_F(Groups, AReportNamesWhoHasNotBegun) {
  Everywhere all(ranks_, {Op::barrier, 3});
  all.start(0);
  all.start(1);
  for (int i = 0; i < 100; ++i) ranks_.job.step_all();
  const std::uint64_t now = posix_platform().now_ns();
  comm::Target target = comm::end_of(comm::request_of(&all.request(0)));
  comm::BlockedThread blocked{comm::BlockedThread::In::wait, now, {&target, nullptr, 1}};
  comm::Engine& engine = ranks_.job.engine(0);
  engine.progress.waiters.enlist(blocked);
  const comm::HangReport report = comm::hang::collect(engine, now);
  engine.progress.waiters.dismiss(blocked);
  EXPECT_EQ(report.collectives, 1u);
  EXPECT_EQ(report.matched_unbound, 0u);
  ASSERT_FALSE(report.receives.rows.empty());
  EXPECT_TRUE(report.receives.rows.front().waited_for);
  const std::string text = comm::to_text(report);
  EXPECT_NE(text.find("rank 2 has not begun collective 0 of group \"test\""), std::string::npos) << text;
  all.start(2);
  all.finish("barrier");
}

TEST(Setting, NamesAlgorithmsByOperation) {
  comm::collectives::AlgorithmOverrides overrides{};
  std::string why;
  using comm::collectives::Algorithm;
  EXPECT_TRUE(comm::collectives::parse_overrides("auto", &overrides, &why));
  EXPECT_TRUE(comm::collectives::parse_overrides("bcast=chain,allreduce=ring", &overrides, &why)) << why;
  EXPECT_EQ(overrides[1], Algorithm::chain);
  EXPECT_EQ(overrides[3], Algorithm::ring);
  for (const char* wrong : {"bcast", "bkast=chain", "bcast=ring", "=", "bcast=", "bcast=x"}) {
    why.clear();
    EXPECT_FALSE(comm::collectives::parse_overrides(wrong, &overrides, &why)) << wrong;
    EXPECT_NE(why.find("CANELE_COLLECTIVES: "), std::string::npos);
  }
  EXPECT_FALSE(comm::collectives::parse_overrides("bcast=ring", &overrides, &why));
  EXPECT_NE(why.find("binomial"), std::string::npos) << "says what there is: " << why;
}

TEST(Setting, IsWhatCallsWithoutAnAlgorithmDo) {
  Ranks ranks(job_of("shm", 4, {"CANELE_COLLECTIVES=bcast=flat"}));
  EXPECT_EQ(comm::api::group_of(ranks.group(0)).overrides[1], comm::collectives::Algorithm::flat);
  Everywhere all(ranks, {Op::bcast, 4, 100});
  all.start_all();
  all.finish("bcast");
}

TEST(Setting, IsCheckedByInit) {
  const char* settings[] = {"CANELE_COLLECTIVES=bcast=bruck"};
  canele_options_t options{};
  options.struct_size = sizeof options;
  options.settings = settings;
  options.settings_count = 1;
  canele_engine_t* engine = nullptr;
  EXPECT_EQ(canele_init(&options, &engine), CANELE_EINVAL);
  EXPECT_TRUE(told("expected for bcast: auto, flat, binomial"));
}

}  // namespace
}  // namespace canele::test
