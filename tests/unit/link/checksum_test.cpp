// SPDX-License-Identifier: BSD-3-Clause
//
// CANELE_CHECKSUM: messages of all sizes arrive over drivers with checksums, and ranks that do not agree report it.
// tests/unit/decorators tests damaged packets.
#include <cstddef>
#include <string>
#include <vector>

#include "unit/engine/local_job.hpp"

namespace canele::test {
namespace {

class Checksums : public testing::TestWithParam<const char*> {
 protected:
  JobOptions options(const char* value) const {
    JobOptions made;
    made.drivers = {comm::find_driver("self"), comm::find_driver(GetParam())};
    made.settings = {std::string("CANELE_CHECKSUM=") + value};
    return made;
  }
};

TEST_P(Checksums, MessagesOfAllSizesArrive) {
  LocalJob job(options("packets"));
  const auto sessions = job.open("s");
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{100}, std::size_t{5000},
                                 std::size_t{65'536}, std::size_t{1'500'000}}) {
    std::vector<unsigned char> sent(size), got(size);
    for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<unsigned char>(i * 31 + size);
    canele_request_t receive{}, send{};
    ASSERT_EQ(canele_irecv(sessions[1], 0, 1, CANELE_TAG_EXACT, got.data(), size, &receive), CANELE_OK);
    ASSERT_EQ(canele_isend(sessions[0], 1, 1, sent.data(), size, &send), CANELE_OK);
    ASSERT_TRUE(job.finish(receive) && job.finish(send));
    ASSERT_EQ(status_of(receive).error, CANELE_OK);
    EXPECT_TRUE(got == sent) << size;
  }
  EXPECT_EQ(job.engine(1).counters.read(comm::Counter::rma_get_bytes), 0u) << "no sum would cover that";
}

TEST_P(Checksums, RanksThatDoNotAgreeSaySo) {
  JobOptions made = options("packets");
  made.settings_of_last = {"CANELE_CHECKSUM=off"};
  LocalJob job(made);
  const auto sessions = job.open("s");
  for (const int rank : {0, 1}) {
    canele_request_t send{};
    ASSERT_EQ(canele_isend(sessions[static_cast<std::size_t>(rank)], 1 - rank, 1, nullptr, 0, &send), CANELE_OK);
    ASSERT_TRUE(job.finish(send));
    EXPECT_EQ(status_of(send).error, CANELE_EVERSION);
    const std::string& why = job.engine(rank).peers[1 - rank]->reason;
    EXPECT_NE(why.find(rank == 0 ? "it runs with CANELE_CHECKSUM=off, this rank with CANELE_CHECKSUM=packets"
                                 : "it runs with CANELE_CHECKSUM=packets, this rank with CANELE_CHECKSUM=off"),
              std::string::npos)
        << why;
  }
}

INSTANTIATE_TEST_SUITE_P(Drivers, Checksums, testing::Values("shm", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace canele::test
