// SPDX-License-Identifier: BSD-3-Clause
//
// Samples as the engine reads them: good, of another machine, each kind of bad line, cut, unreadable, too long; and the
// costs that follow.
//
// One thread. The machine is made up, too: its name and processor are files of the fake platform.
#include "comm/config/samples.hpp"

#include <canele/canele.h>
#include <gtest/gtest.h>

#include "tests/unit/config/fake_platform.hpp"

namespace canele::comm {
namespace {

using test::FakePlatform;
using State = Samples::State;

const std::string shm_line =
    "driver shm date=2025-01-31 latency_ns=120 gap_ns=60 bytes_per_second=7000000000 declared_latency_ns=150 "
    "declared_bytes_per_second=8000000000\n";
const std::string head =
    "canele-samples 1\nhost here\nmachine Abacus 7, 2 PUs, Linux 6.1\nlibrary " + std::string(canele_version()) + "\n";

FakePlatform machine() {
  FakePlatform platform;
  platform.environment["HOME"] = "/home/me";
  platform.files["/proc/sys/kernel/hostname"] = {true, true, "here\n", ""};
  platform.files["/proc/sys/kernel/osrelease"] = {true, true, "6.1\n", ""};
  platform.files["/proc/cpuinfo"] = {true, true, "processor\t: 0\nmodel name\t: Abacus 7\nflags\t: x\n", ""};
  return platform;
}

Samples read(FakePlatform platform) { return read_samples(platform, Settings(platform, {})); }

Samples read_text(const std::string& text) {
  FakePlatform platform = machine();
  platform.files["/home/me/.cache/canele/here.samples"] = {true, true, text, ""};
  return read(platform);
}

drivers::Capabilities declaring(std::uint32_t latency_ns, double bandwidth) {
  drivers::Capabilities capabilities;
  capabilities.latency_ns = latency_ns;
  capabilities.bandwidth = bandwidth;
  return capabilities;
}

/// Checks that there is one warning, and that it holds these parts.
void expect_bad(const std::string& line, std::initializer_list<std::string_view> parts) {
  const Samples samples = read_text(head + shm_line + line + "\nend\n");
  EXPECT_EQ(samples.state, State::read) << line;
  ASSERT_EQ(samples.all.size(), 1u) << line;
  EXPECT_TRUE(samples.all[0].costs.times.empty()) << line;
  for (const std::string_view part : parts) {
    EXPECT_NE(samples.problem.find(part), std::string::npos) << "no \"" << part << "\" in: " << samples.problem;
  }
  EXPECT_NE(samples.problem.find("line 6"), std::string::npos) << samples.problem;
  EXPECT_NE(samples.problem.find("expected: "), std::string::npos) << samples.problem;
}

TEST(Samples, AreReadWhereTheUsersCacheIs) {
  FakePlatform platform = machine();
  const FileText text{true, true, head + shm_line + "end\n", ""};
  EXPECT_EQ(read(platform).state, State::absent);
  platform.files["/home/me/.cache/canele/here.samples"] = text;
  EXPECT_EQ(read(platform).state, State::read);
  platform.environment["XDG_CACHE_HOME"] = "/cache";
  EXPECT_EQ(read(platform).state, State::absent);
  EXPECT_EQ(read(platform).file, "/cache/canele/here.samples");
  platform.environment["CANELE_SAMPLES"] = "mine";
  platform.files["mine/here.samples"] = text;
  EXPECT_EQ(read(platform).state, State::read);
  platform.environment["CANELE_SAMPLES"] = "off";
  EXPECT_EQ(read(platform).state, State::off);
  platform.environment.clear();
  EXPECT_EQ(read(platform).state, State::off);
  EXPECT_EQ(read(platform).problem, "");
}

TEST(Samples, GiveTheCostsOfTheDriverThatWasMeasured) {
  const Samples samples = read_text(head + "# a comment\n\n" + shm_line + "time shm 8 120\ntime shm 1024 620\nend\n");
  EXPECT_EQ(samples.problem, "");
  ASSERT_EQ(samples.state, State::read);
  const strategies::Costs measured = costs_of(samples, "shm", declaring(150, 8.0));
  EXPECT_TRUE(measured.measured);
  EXPECT_EQ(measured.latency_ns, 120u);
  EXPECT_EQ(measured.gap_ns, 60u);
  EXPECT_EQ(measured.bytes_per_second, 7'000'000'000u);
  ASSERT_EQ(measured.times.size(), 2u);
  EXPECT_EQ(samples.all[0].date, "2025-01-31");
  // Another interface, or a driver that declares other capabilities now, is not what was measured.
  for (const strategies::Costs& costs :
       {costs_of(samples, "shm:eth1", declaring(150, 8.0)), costs_of(samples, "shm", declaring(151, 8.0)),
        costs_of(samples, "shm", declaring(150, 8.5))}) {
    EXPECT_FALSE(costs.measured);
    EXPECT_GE(costs.latency_ns, 150u);
    EXPECT_GE(costs.bytes_per_second, 8'000'000'000u);
  }
}

TEST(Samples, TimesBetweenMeasuredSizesLieOnALine) {
  strategies::Costs costs;
  costs.latency_ns = 100;
  costs.bytes_per_second = 1'000'000'000;
  EXPECT_DOUBLE_EQ(costs.time_ns(0), 100);
  EXPECT_DOUBLE_EQ(costs.time_ns(5000), 5100);
  costs.times = {{8, 100}, {1008, 1100}, {5008, 2100}};
  EXPECT_DOUBLE_EQ(costs.time_ns(0), 100);
  EXPECT_DOUBLE_EQ(costs.time_ns(8), 100);
  EXPECT_DOUBLE_EQ(costs.time_ns(508), 600);
  EXPECT_DOUBLE_EQ(costs.time_ns(5008), 2100);
  EXPECT_DOUBLE_EQ(costs.time_ns(6008), 3100);
}

TEST(Samples, OfAnotherHostMachineOrVersionAreStale) {
  for (const auto& [from, to] :
       {std::pair{"host here", "host there"}, std::pair{"Abacus 7", "Abacus 8"}, std::pair{"library ", "library 0.0.1"},
        std::pair{"canele-samples 1", "canele-samples 2"}}) {
    std::string text = head + shm_line + "end\n";
    text.replace(text.find(from), std::string_view(from).size(), to);
    const Samples samples = read_text(text);
    EXPECT_EQ(samples.state, State::stale) << to;
    EXPECT_NE(samples.problem.find(to), std::string::npos) << samples.problem;
    EXPECT_TRUE(samples.all.empty());
    EXPECT_FALSE(costs_of(samples, "shm", declaring(150, 8.0)).measured);
  }
}

TEST(Samples, EachBadLineIsNamedAndIgnored) {
  const std::string tcp = "driver tcp date=2025-01-31 latency_ns=9000 gap_ns=60 bytes_per_second=5 ";
  const std::string declared = "declared_latency_ns=5 declared_bytes_per_second=6";
  expect_bad("drivers tcp", {"\"drivers tcp\"", "an unknown word"});
  expect_bad("driver", {"names no driver"});
  expect_bad(shm_line.substr(0, shm_line.size() - 1), {"has a record already"});
  expect_bad(tcp + "declared_latency_ns=5", {"declared_bytes_per_second is missing"});
  expect_bad(tcp + declared + " speed=3", {"speed=3"});
  expect_bad(tcp + declared + " gap_ns=61", {"gap_ns=61", "twice"});
  for (const char* wrong : {"latency_ns=0", "latency_ns=-3", "latency_ns=1e3", "latency_ns=", "latency_ns",
                            "latency_ns=99999999999999999999", "latency_ns=12us"}) {
    expect_bad("driver tcp date=2025-01-31 " + std::string(wrong) + " gap_ns=60 bytes_per_second=5 " + declared,
               {wrong, "driver NAME date="});
  }
  expect_bad("driver tcp date=yesterday latency_ns=1 gap_ns=60 bytes_per_second=5 " + declared, {"date=yesterday"});
  expect_bad("driver tcp latency_ns=1 gap_ns=60 bytes_per_second=5 " + declared, {"date is missing"});
  expect_bad("time tcp 8 100", {"no good record of this driver", "time NAME BYTES NS"});
  for (const char* wrong : {"time", "time shm", "time shm 8", "time shm 8 0", "time shm 0 8", "time shm 8 9 10"}) {
    expect_bad(wrong, {wrong, "time NAME BYTES NS"});
  }
  expect_bad("\x1b[2J\x01", {"?[2J?"});  // nothing that a terminal would obey
}

TEST(Samples, SeveralBadLinesGiveOneProblem) {
  const Samples samples = read_text(head + "a\n" + shm_line + "b\ntime shm 8 9\ntime shm 8 9\nend\nc\n");
  EXPECT_EQ(samples.state, State::read);
  EXPECT_NE(samples.problem.find("line 5, \"a\""), std::string::npos) << samples.problem;
  EXPECT_NE(samples.problem.find("in all: 4"), std::string::npos) << samples.problem;
  ASSERT_EQ(samples.all.size(), 1u);
  EXPECT_EQ(samples.all[0].costs.times.size(), 1u);
}

TEST(Samples, CutAtAnyByteNothingOfThemCounts) {
  const std::string text = head + shm_line + "time shm 8 120\nend\n";
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {  // a missing last line feed is no fault
    if (text.substr(0, length).ends_with("\nend")) continue;
    const Samples samples = read_text(text.substr(0, length));
    EXPECT_TRUE(samples.state == State::rejected || samples.state == State::stale) << length;
    EXPECT_NE(samples.problem, "") << length;
    EXPECT_TRUE(samples.all.empty()) << length;
  }
}

TEST(Samples, AFileThatCannotBeUsedIsRefusedWithTheReason) {
  FakePlatform platform = machine();
  FileText& file = platform.files["/home/me/.cache/canele/here.samples"];
  file = {true, false, "", "Permission denied"};
  EXPECT_EQ(read(platform).state, State::rejected);
  EXPECT_EQ(read(platform).problem, "it cannot be read: Permission denied");
  file = {true, true, std::string(65'537, '\n'), ""};
  EXPECT_EQ(read(platform).state, State::rejected);
  EXPECT_EQ(read(platform).problem, "it is longer than 65536 bytes");
  file = {true, true, "{\"host\": \"here\"}\n", ""};
  EXPECT_EQ(read(platform).state, State::rejected);
  EXPECT_NE(read(platform).problem.find("its first line is"), std::string::npos);
  file = {true, true, "canele-samples 1\ncolour blue\n", ""};
  EXPECT_EQ(read(platform).state, State::rejected);
  EXPECT_NE(read(platform).problem.find("expected: \"host here\""), std::string::npos);
}

TEST(Samples, HaveLimits) {
  std::string text = head;
  for (int i = 0; i < 65; ++i) {
    std::string line = shm_line;
    text += line.replace(line.find("shm"), 3, "d" + std::to_string(i));
  }
  for (int i = 1; i <= 33; ++i) text += "time d0 " + std::to_string(i) + " 5\n";
  const Samples samples = read_text(text + "end\n");
  EXPECT_EQ(samples.all.size(), 64u);
  EXPECT_EQ(samples.all[0].costs.times.size(), 32u);
  EXPECT_NE(samples.problem.find("in all: 2"), std::string::npos) << samples.problem;
}

}  // namespace
}  // namespace canele::comm
