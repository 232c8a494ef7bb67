// SPDX-License-Identifier: BSD-3-Clause
//
// JSON writer, event log and reports: the text must parse, hold the data put in, and survive hostile strings.
//
// One thread. nlohmann-json reads back what our writer wrote: a second opinion on the format.
#include "comm/observe/report.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "comm/observe/event_log.hpp"
#include "comm/observe/json.hpp"

namespace canele::comm {
namespace {

using nlohmann::json;

std::string written(std::string_view text) {
  JsonWriter writer;
  writer.begin_array().value(text).end_array();
  return json::parse(std::move(writer).finish()).at(0).get<std::string>();
}

TEST(JsonWriter, EscapesWhatJsonCannotHold) {
  std::string all_ascii;
  for (int c = 0; c < 128; ++c) all_ascii += static_cast<char>(c);
  EXPECT_EQ(written(all_ascii), all_ascii);
  EXPECT_EQ(written("canel\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8D\xB0"), "canel\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8D\xB0");
}

TEST(JsonWriter, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(written("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(written("\xC3"), bad);                                // cut short
  EXPECT_EQ(written("\xC0\x80"), bad + bad);                      // overlong
  EXPECT_EQ(written("\xED\xA0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(written("\xF4\x90\x80\x80").size(), 4 * bad.size());  // beyond U+10FFFF
}

TEST(JsonWriter, EveryByteStringGivesValidJson) {
  std::uint64_t state = 42;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 24; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += static_cast<char>(state >> 56);
    }
    EXPECT_NO_THROW(written(text));
  }
}

TEST(JsonWriter, NumbersKeepAllTheirBits) {
  JsonWriter writer;
  writer.begin_array().value(~std::uint64_t{0}).value(std::int64_t{-5}).value(0.1).value(1e300).value(true);
  writer.value(std::nan("")).value(HUGE_VAL).end_array();
  const json read = json::parse(std::move(writer).finish());
  EXPECT_EQ(read[0].get<std::uint64_t>(), ~std::uint64_t{0});
  EXPECT_EQ(read[1].get<int>(), -5);
  EXPECT_EQ(read[2].get<double>(), 0.1);
  EXPECT_EQ(read[3].get<double>(), 1e300);
  EXPECT_EQ(read[4], true);
  EXPECT_TRUE(read[5].is_null());
  EXPECT_TRUE(read[6].is_null());
}

TEST(JsonWriter, EmptyAndNestedContainers) {
  JsonWriter writer;
  writer.begin_object().key("a").begin_array().end_array().key("b").begin_object().end_object();
  writer.key("c").begin_array().value(1).begin_object().field("d", "e").end_object().end_array().end_object();
  EXPECT_EQ(json::parse(std::move(writer).finish()), json::parse(R"({"a":[],"b":{},"c":[1,{"d":"e"}]})"));
}

TEST(Counters, NamesAreUniqueAndHelped) {
  std::set<std::string_view> names;
  for (int i = 0; i < counter_names; ++i) {
    const CounterInfo& info = counter_name(i);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.help.empty());
  }
  EXPECT_EQ(counter_info(Counter::eager_sent).name, "eager_sent");
  EXPECT_EQ(counter_info(Counter::connections_rejected).name, "connections_rejected");
  EXPECT_EQ(counter_info(Counter::unexpected_bytes_most).name, "unexpected_bytes_most");
}

TEST(Counters, OldNamesReadTheSameCounter) {
  std::map<std::string_view, Counter> old_names;
  for (int i = 0; i < counter_names; ++i) {
    if (i < static_cast<int>(Counter::count)) {
      EXPECT_EQ(counter_of_name(i), static_cast<Counter>(i));
      EXPECT_EQ(counter_name(i).name, counter_info(static_cast<Counter>(i)).name);
    } else {
      old_names[counter_name(i).name] = counter_of_name(i);
      const std::string help = "deprecated; expected: " + std::string(counter_info(counter_of_name(i)).name);
      EXPECT_EQ(counter_name(i).help, help);
    }
  }
  EXPECT_EQ(old_names.size(), 7u);
  EXPECT_EQ(old_names.at("copies_pushed"), Counter::rma_put_bytes);
  EXPECT_EQ(old_names.at("turns_lost"), Counter::core_losses);
}

TEST(Counters, TableAddsSubtractsAndKeepsTheMost) {
  EngineCounters counters;
  counters.add(Counter::unexpected_now, 5);
  counters.raise_to(Counter::unexpected_most, Counter::unexpected_now);
  counters.sub(Counter::unexpected_now, 3);
  counters.raise_to(Counter::unexpected_most, Counter::unexpected_now);
  EXPECT_EQ(counters.read(Counter::unexpected_now), 2u);
  EXPECT_EQ(counters.read(Counter::unexpected_most), 5u);
}

TEST(Report, CountersHoldEngineValuesPeersAndDrivers) {
  EngineCounters engine;
  engine.add(Counter::eager_sent, 7);
  engine.add(Counter::rma_get_bytes, 8);
  PeerCounters peer;
  peer.add(Counter::bytes_sent, 700);
  CountersReport report;
  report.version = "1.2.3";
  report.rank = 1;
  report.size = 4;
  report.counters = read_all(engine);
  report.peers.push_back({3, "shm", read_all(peer)});
  report.drivers.push_back({"shm", {}});
  report.drivers[0].counters.packets_sent = 9;

  const json read = json::parse(to_json(report));
  EXPECT_EQ(read["canele"], "1.2.3");
  EXPECT_EQ(read["rank"], 1);
  EXPECT_EQ(read["size"], 4);
  EXPECT_EQ(read["counters"].size(), static_cast<std::size_t>(counter_names));
  EXPECT_EQ(read["counters"]["eager_sent"], 7);
  EXPECT_EQ(read["counters"]["rma_get_bytes"], 8);
  EXPECT_EQ(read["counters"]["copies_pulled"], 8) << "the old name";
  EXPECT_EQ(read["peers"][0]["rank"], 3);
  EXPECT_EQ(read["peers"][0]["driver"], "shm");
  EXPECT_EQ(read["peers"][0]["counters"].size(), static_cast<std::size_t>(Counter::per_peer_count));
  EXPECT_EQ(read["peers"][0]["counters"]["bytes_sent"], 700);
  EXPECT_EQ(read["drivers"][0]["name"], "shm");
  EXPECT_EQ(read["drivers"][0]["packets_sent"], 9);
}

TEST(Report, InfoSaysWhyADriverIsMissing) {
  InfoReport report;
  report.version = "1.2.3";
  report.abi = 1;
  report.drivers.push_back({"psm2", "Omni-Path", "not built: no psm2.h", false, {}});
  report.drivers.push_back({"tcp", "sockets", "", true, {}});
  report.drivers[1].capabilities.max_packet = 65536;
  report.strategies.push_back({"fifo", "one message a packet"});
  report.topology.summary = "1 package";

  const json read = json::parse(to_json(report));
  EXPECT_EQ(read["drivers"][0]["available"], false);
  EXPECT_EQ(read["drivers"][0]["why_not"], "not built: no psm2.h");
  EXPECT_FALSE(read["drivers"][0].contains("capabilities"));
  EXPECT_EQ(read["drivers"][1]["available"], true);
  EXPECT_EQ(read["drivers"][1]["capabilities"]["max_packet"], 65536);
  EXPECT_EQ(read["drivers"].size(), 2u);
  EXPECT_EQ(read["strategies"][0]["name"], "fifo");
  EXPECT_EQ(read["topology"]["summary"], "1 package");
  EXPECT_FALSE(read.contains("job"));
}

TEST(Report, CopyTextCutsAndTellsTheSize) {
  char room[6];
  std::size_t needed = 0;
  EXPECT_TRUE(copy_text("12345", room, sizeof room, &needed));
  EXPECT_STREQ(room, "12345");
  EXPECT_EQ(needed, 6u);
  EXPECT_FALSE(copy_text("123456", room, sizeof room, &needed));
  EXPECT_STREQ(room, "12345");
  EXPECT_EQ(needed, 7u);
  EXPECT_FALSE(copy_text("1", nullptr, 0, &needed));
  EXPECT_EQ(needed, 2u);
  EXPECT_FALSE(copy_text("1", nullptr, 0, nullptr));
}

class CountersFile : public ::testing::Test {
 protected:
  CountersFile() {
    char name[] = "/tmp/canele-report-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~CountersFile() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_F(CountersFile, PercentRBecomesTheRank) {
  EXPECT_EQ(file_of_rank("a-%r.json", 12), "a-12.json");
  EXPECT_EQ(file_of_rank("%r/%r%", 3), "3/3%");
  EXPECT_EQ(file_of_rank("plain", 3), "plain");
}

TEST_F(CountersFile, IsWrittenWholeAndReplaced) {
  const std::string file = directory_ + "/counters.json";
  EXPECT_EQ(write_json(file, "first and longer", "it"), "");
  EXPECT_EQ(write_json(file, "second", "it"), "");
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "second");
  EXPECT_FALSE(std::filesystem::exists(file + ".new0"));
}

TEST_F(CountersFile, AFailureNamesFileAndReason) {
  const std::string why = write_json(directory_ + "/no/such/place", "x", "it");
  EXPECT_NE(why.find("/no/such/place"), std::string::npos) << why;
  EXPECT_NE(why.find("No such file"), std::string::npos) << why;
  EXPECT_NE(write_json("/dev/full", "x", "it").find("No space"), std::string::npos);
}

TEST_F(CountersFile, ADeviceIsWrittenToNotReplaced) {
  EXPECT_EQ(write_json("/dev/null", "x", "it"), "");
  struct stat status;
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

EventRecord record(std::uint64_t time) { return {time, time * 10, 8, 1, 2, Event::send_posted, 0}; }

TEST(EventLog, KeepsTheNewestAndCountsTheLost) {
  EventLog log(5);  // rounded up to 8
  EXPECT_EQ(log.kept(), 0u);
  for (std::uint64_t t = 0; t < 20; ++t) log.add(record(t));
  EXPECT_EQ(log.kept(), 8u);
  EXPECT_EQ(log.lost(), 12u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(log.at(i).time_ns, 12 + i);
}

TEST(EventLog, DumpIsATraceThatPerfettoReads) {
  EventLog log(4);
  log.add({1'234'567, ~std::uint64_t{0}, 99, 1, 2, Event::rts_sent, 0});
  log.add({2'000'001, 0, 0, EventLog::no_peer, EventLog::no_session, Event::worker_parked, 0});
  const json read = json::parse(log.to_json(5));
  ASSERT_EQ(read["traceEvents"].size(), 3u);  // the name of the process comes first
  const json& first = read["traceEvents"][1];
  EXPECT_EQ(first["name"], "rts_sent");
  EXPECT_EQ(first["ph"], "i");
  EXPECT_EQ(first["ts"], 1234.567);
  EXPECT_EQ(first["pid"], 5);
  EXPECT_EQ(first["args"]["tag"], "0xffffffffffffffff");
  EXPECT_EQ(first["args"]["peer"], 1);
  EXPECT_FALSE(read["traceEvents"][2]["args"].contains("peer"));
  EXPECT_EQ(read["otherData"]["lost"], 0);
}

TEST(EventLog, SeveralRanksMakeOneTrace) {
  EventLog one(2), another(2);
  for (std::uint64_t t = 0; t < 5; ++t) one.add(record(t));
  another.add(record(9));
  const std::array<EventLog::OfRank, 2> logs = {EventLog::OfRank{0, &one}, EventLog::OfRank{7, &another}};
  const json read = json::parse(EventLog::to_json(logs));
  ASSERT_EQ(read["traceEvents"].size(), 5u);  // two names, two events and one
  EXPECT_EQ(read["traceEvents"][4]["pid"], 7);
  EXPECT_EQ(read["otherData"]["lost"], 3);
}

TEST(EventLog, EveryKindHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(Event::count); ++i) {
    EXPECT_TRUE(names.insert(event_name(static_cast<Event>(i))).second);
  }
}

}  // namespace
}  // namespace canele::comm
