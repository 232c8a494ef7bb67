// SPDX-License-Identifier: BSD-3-Clause
//
// PMI-1: the parser, blobs as values, and the client against a scripted launcher. The launcher sends answers in pieces
// of every length, wrong answers, the end of the connection after every byte, deaths, deadlines.
//
// One thread. The launcher is a function from commands to answers; time is a number that the test sets.
#include "comm/bootstrap/pmi1.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "comm/bootstrap/limits.hpp"
#include "comm/bootstrap/pmi1_client.hpp"

namespace canele::comm {
namespace {

constexpr std::uint64_t one_ms = 1'000'000;
constexpr std::uint64_t soon = 1'000 * one_ms;

Blob blob_of(std::size_t size) {
  Blob blob(size);
  for (std::size_t i = 0; i < size; ++i) blob[i] = static_cast<std::byte>(i * 7 + i / 251);
  return blob;
}

/// A launcher with a key space. It behaves as hydra does, but shows puts at once.
struct Launcher {
  std::map<std::string, std::string> values;
  bool alone = true;  ///< no other rank is to come to the barrier

  std::string answer(const std::string& line) {
    const auto message = Pmi1Message::parse(line);
    if (!message) return "cmd=what\n";
    const std::string command(message->command()), key(message->word("key"));
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    if (command == "get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1\n";
    if (command == "barrier_in") return alone ? "cmd=barrier_out\n" : "";
    if (command == "finalize") return "cmd=finalize_ack\n";
    if (command == "put") {
      values[key] = message->word("value");
      return "cmd=put_result rc=0 msg=success\n";
    }
    if (command == "get" && values.contains(key)) return "cmd=get_result rc=0 msg=success value=" + values[key] + "\n";
    if (command == "get") return "cmd=get_result rc=-1 msg=key_" + key + "_not_found value=unknown\n";
    return "cmd=what\n";
  }
};

/// A client and the events that it receives.
struct Fixture {
  explicit Fixture(int size = 3) : client(0, size) {}

  /// Runs both until the client has nothing more to send; answers come in pieces of `piece` bytes.
  void talk(std::size_t piece = 4096) {
    while (!client.output().empty()) {
      const std::string said = std::exchange(client.output(), {});
      said_.add(said);
      std::string line;
      while (said_.next(&line)) hear(launcher.answer(line), piece);
      EXPECT_TRUE(said_.empty()) << "half a command";
    }
    collect();
  }
  void hear(const std::string& bytes, std::size_t piece = 4096) {
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      client.hear(std::string_view(bytes).substr(at, piece), now);
    collect();
  }
  void collect() {
    Pmi1Client::News news = client.take_news();
    for (auto& answer : news.answers) answer.deliver(answer.ok, std::move(answer.blob), answer.why);
    deaths.insert(deaths.end(), news.deaths.begin(), news.deaths.end());
  }
  void pass(std::uint64_t length) {
    now += length;
    client.pass_time(now);
    collect();
  }

  struct Told {
    int times = 0;
    bool ok = false;
    Blob blob;
    std::string why;
  };
  void ask(Told& told, int rank, const std::string& key, std::uint64_t deadline = soon, bool patient = true) {
    const auto deliver = [&told](bool ok, Blob blob, const std::string& why) {
      told = {told.times + 1, ok, std::move(blob), why};
    };
    client.ask({rank, key, deliver, patient}, deadline, now);
    collect();
  }

  Launcher launcher;
  Pmi1Client client;
  std::uint64_t now = 0;
  std::vector<int> deaths;

 private:
  Pmi1Lines said_;
};

TEST(Pmi1Message, TakesWordsApart) {
  const auto message = Pmi1Message::parse("cmd=get_result  rc=-1 msg=key_x_not_found value=a=b=c empty= ");
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->command(), "get_result");
  EXPECT_EQ(message->number("rc"), -1);
  EXPECT_EQ(message->word("value"), "a=b=c");
  EXPECT_EQ(message->word("empty"), "");
  EXPECT_EQ(message->word("absent"), "");
  for (const char* name : {"msg", "empty", "absent"}) EXPECT_EQ(message->number(name), std::nullopt) << name;
}

TEST(Pmi1Message, RejectsOtherLines) {
  for (const char* line : {"", " ", "hello", "rc=0 cmd=maxes", "cmd=maxes key", "=x", "cmd=x =y", "HTTP/1.1 200 OK"})
    EXPECT_FALSE(Pmi1Message::parse(line).has_value()) << "'" << line << "'";
}

TEST(Pmi1Lines, CutsAtEveryBoundary) {
  const std::string stream = "cmd=a\n\ncmd=bcd x=1\n";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    Pmi1Lines lines;
    std::vector<std::string> found;
    std::string line;
    for (const auto& piece : {stream.substr(0, cut), stream.substr(cut)}) {
      lines.add(piece);
      while (lines.next(&line)) found.push_back(line);
    }
    EXPECT_EQ(found, (std::vector<std::string>{"cmd=a", "", "cmd=bcd x=1"})) << cut;
  }
}

TEST(Pmi1Blob, ComesBackWhateverItsLength) {
  std::vector<std::size_t> sizes = {0, 1, 2, 3, 4, 5, 6, longest_blob - 1, longest_blob};
  for (std::size_t part = 1; part <= 3; ++part)
    for (int off = -3; off <= 3; ++off) sizes.push_back(part * 753 + static_cast<std::size_t>(off + 3));
  for (const std::size_t value_limit : {64u, 65u, 66u, 67u, 1024u, 4096u}) {
    for (const std::size_t size : sizes) {
      std::vector<std::string> values;
      std::string why;
      ASSERT_TRUE(pmi1_parts(1, "k", blob_of(size), {64, value_limit}, &values, &why)) << why;
      Pmi1Blob blob;
      for (const std::string& value : values) {
        EXPECT_FALSE(blob.complete());
        ASSERT_LT(value.size(), value_limit);
        ASSERT_TRUE(blob.add(value)) << value;
      }
      EXPECT_TRUE(blob.complete());
      EXPECT_EQ(blob.take(), blob_of(size)) << size;
    }
  }
}

TEST(Pmi1Blob, RejectsMalformedBytes) {
  for (const char* first :
       {"", "1", "1:3", "1:3:", "1:3:AAA", "1:3:AAAAA", "1:3:AA=A", "1:3:AAAAAAAA", "0:0:", "x:3:AAAA", "1:x:AAAA",
        "1:-1:", "1:65537:", "9:3:AAAA", "1:1:AB", "-1:3:AAAA", "99999999999999999999:1:AA"})
    EXPECT_FALSE(Pmi1Blob().add(first)) << first;
  Pmi1Blob blob;
  ASSERT_TRUE(blob.add("2:6:AAAA"));
  EXPECT_FALSE(blob.complete());
  EXPECT_FALSE(blob.add("AAAAAAAA")) << "more bytes than announced";
}

TEST(Pmi1Parts, RejectsKeysThatDoNotFit) {
  std::vector<std::string> values;
  std::string why;
  EXPECT_FALSE(pmi1_parts(0, "a b", {}, {}, &values, &why));
  EXPECT_NE(why.find("PMI-1 cannot carry"), std::string::npos) << why;
  EXPECT_TRUE(pmi1_parts(0, std::string(52, 'k'), {}, {}, &values, &why)) << why;
  EXPECT_EQ(pmi1_key(0, std::string(52, 'k'), 0).size(), 63u);
  EXPECT_FALSE(pmi1_parts(0, std::string(54, 'k'), {}, {}, &values, &why));
  EXPECT_NE(why.find("2 characters too long"), std::string::npos) << why;
  EXPECT_FALSE(pmi1_parts(0, "k", Blob(65'537), {}, &values, &why));
  EXPECT_NE(why.find("at most 65536"), std::string::npos) << why;
}

TEST(Pmi1Client, ExchangesWithAnswersInPiecesOfEveryLength) {
  for (std::size_t piece = 1; piece <= 80; ++piece) {
    Fixture job;
    Fixture::Told own, other, missing;
    job.talk(piece);
    ASSERT_TRUE(job.client.hello_done()) << piece;
    EXPECT_EQ(job.client.space(), "kvs_1");
    std::string why;
    ASSERT_TRUE(job.client.put("address", blob_of(2'000), &why)) << why;
    job.client.enter_barrier();
    job.talk(piece);
    EXPECT_FALSE(job.client.in_barrier());
    EXPECT_EQ(job.launcher.values.size(), 3u) << "three parts";
    job.launcher.values["canele.1.empty.0"] = "1:0:";
    job.ask(own, 0, "address");
    job.ask(other, 1, "empty");
    job.ask(missing, 1, "nothing", soon, false);
    job.talk(piece);
    EXPECT_TRUE(own.times == 1 && own.ok && own.blob == blob_of(2'000)) << piece << own.why;
    EXPECT_TRUE(other.times == 1 && other.ok && other.blob.empty()) << piece << other.why;
    EXPECT_TRUE(missing.times == 1 && !missing.ok) << piece;
    EXPECT_TRUE(job.client.idle());
    job.client.finalize();
    job.talk(piece);
    EXPECT_TRUE(job.client.finalized());
  }
}

TEST(Pmi1Client, TheConnectionMayEndAfterEveryByte) {
  // Output of the launcher from the first exchange to the answer of a get in two parts.
  const std::string stream =
      "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes kvsname_max=9 keylen_max=64 "
      "vallen_max=1024\n"
      "cmd=my_kvsname kvsname=k\ncmd=get_result rc=0 msg=success value=2:4:AAAA\ncmd=get_result rc=0 msg=success "
      "value=AA\n";
  for (std::size_t length = 0; length <= stream.size(); ++length) {
    Fixture job;
    Fixture::Told told, late;
    job.ask(told, 1, "address");
    job.hear(stream.substr(0, length));
    EXPECT_FALSE(job.client.lost()) << length << job.client.loss();
    job.client.lose("the connection to the launcher is lost");
    job.collect();
    EXPECT_EQ(told.times, 1) << length;
    EXPECT_EQ(told.ok, length == stream.size()) << length << told.why;
    EXPECT_TRUE(told.ok || told.why == "the connection to the launcher is lost") << told.why;
    job.ask(late, 1, "address");
    EXPECT_TRUE(late.times == 1 && !late.ok) << "asked after the end";
    EXPECT_EQ(job.client.output(), "") << "there is no launcher to say it to";
    EXPECT_EQ(job.client.next_time(), Pmi1Client::never);
  }
}

TEST(Pmi1Client, WrongAnswersEndTheConnectionAndAreNamed) {
  const std::string init = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
  const std::string maxes = "cmd=maxes kvsname_max=9 keylen_max=64 vallen_max=1024\n";
  const std::string hello = init + maxes + "cmd=my_kvsname kvsname=k\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"SSH-2.0-OpenSSH\n", "'SSH-2.0-OpenSSH', which is not a line of PMI-1"},
      {"\n", "which is not a line of PMI-1"},
      {std::string(Pmi1Lines::longest_line + 1, 'x'), "a line without an end"},
      {"cmd=maxes\n", "'cmd=maxes'; expected: 'response_to_init'"},
      {"cmd=response_to_init pmi_version=2 rc=0\n", "does not speak PMI version 1 (it answers version '2', code '0')"},
      {"cmd=response_to_init pmi_version=1 rc=-1\n", "code '-1'"},
      {"cmd=response_to_init rc=0\n", "does not speak PMI version 1"},
      {init + "cmd=maxes\n", "limits on keys and values"},
      {init + "cmd=maxes keylen_max=64 vallen_max=63\n", "limits on keys and values"},
      {init + "cmd=maxes keylen_max=-1 vallen_max=1024\n", "limits on keys and values"},
      {init + maxes + "cmd=my_kvsname kvsname=\n", "not named the job's key space"},
      {hello + "cmd=put_result rc=0\n", "'cmd=put_result rc=0'; expected: 'get_result'"},
      {hello + "cmd=barrier_out\n", "'cmd=barrier_out'; expected"},
      {hello + "cmd=canele_died rank=3\n", "the death of an unknown rank"},
      {hello + "cmd=canele_died\n", "the death of an unknown rank"},
      {hello + "cmd=get_result rc=0 value=1:0:\ncmd=get_result rc=0 value=1:0:\n", "expected: nothing"}};
  for (const auto& [stream, expected] : cases) {
    Fixture job;
    Fixture::Told told;
    job.ask(told, 1, "address");
    job.hear(stream);
    EXPECT_TRUE(job.client.lost()) << stream;
    EXPECT_NE(job.client.loss().find(expected), std::string::npos) << stream << job.client.loss();
    EXPECT_EQ(told.times, 1) << stream;
  }
}

TEST(Pmi1Client, AMalformedValueEndsTheQuestionOnly) {
  Fixture job;
  Fixture::Told told;
  job.talk();
  job.launcher.values["canele.2.address.0"] = "not-ours";
  job.ask(told, 2, "address");
  job.talk();
  EXPECT_TRUE(told.times == 1 && !told.ok);
  EXPECT_NE(told.why.find("rank 2 has published as 'address' is malformed"), std::string::npos) << told.why;
  EXPECT_FALSE(job.client.lost());
}

TEST(Pmi1Client, ARejectedPutIsALoss) {
  Fixture job;
  job.talk();
  std::string why;
  ASSERT_TRUE(job.client.put("k", {}, &why));
  job.hear("cmd=put_result rc=-1 msg=no_room\n");
  EXPECT_EQ(job.client.loss(), "the launcher has refused to publish a value: no_room");
}

TEST(Pmi1Client, AsksAgainUntilItIsThere) {
  Fixture job;
  Fixture::Told told;
  job.talk();
  job.ask(told, 1, "late");
  job.talk();
  EXPECT_EQ(told.times, 0);
  std::uint64_t last = 0;
  for (int turn = 0; turn < 4; ++turn) {
    const std::uint64_t pause = job.client.next_time() - job.now;
    EXPECT_GT(pause, last) << "the pauses grow";
    last = pause;
    job.pass(pause - 1);
    EXPECT_EQ(job.client.output(), "") << "not yet";
    job.pass(1);
    EXPECT_NE(job.client.output(), "");
    if (turn == 3) job.launcher.values["canele.1.late.0"] = "1:1:AA";
    job.talk();
  }
  EXPECT_TRUE(told.times == 1 && told.ok && told.blob == Blob(1));
}

TEST(Pmi1Client, GivesUpAtTheDeadline) {
  Fixture job;
  Fixture::Told told;
  job.talk();
  job.ask(told, 1, "never", 20 * one_ms);
  job.talk();
  for (int turn = 0; turn < 100 && told.times == 0; ++turn) {
    job.pass(job.client.next_time() - job.now);
    job.talk();
  }
  EXPECT_EQ(job.now, 20 * one_ms);
  EXPECT_TRUE(told.times == 1 && !told.ok);
  EXPECT_EQ(told.why, "rank 1 has not published 'never' in the time given");
}

TEST(Pmi1Client, AnAnswerThatComesTooLateIsForNobody) {
  Fixture job;
  Fixture::Told first, second;
  job.talk();
  job.ask(first, 1, "a", 10 * one_ms);
  job.ask(second, 1, "b");
  EXPECT_NE(job.client.output().find("key=canele.1.a.0"), std::string::npos);
  EXPECT_EQ(job.client.output().find("key=canele.1.b.0"), std::string::npos) << "one at a time";
  job.pass(10 * one_ms);
  EXPECT_EQ(first.times, 1);
  job.client.output().clear();
  job.hear("cmd=get_result rc=0 value=1:1:AA\n");
  EXPECT_EQ(first.times, 1);
  EXPECT_EQ(second.times, 0) << "the answer was not its";
  job.hear("cmd=get_result rc=0 value=1:0:\n");
  EXPECT_TRUE(second.times == 1 && second.ok && second.blob.empty());
}

TEST(Pmi1Client, GetsGoOnWhileTheBarrierIsOpen) {
  Fixture job;
  Fixture::Told told;
  job.launcher.alone = false;
  job.talk();
  job.client.enter_barrier();
  job.launcher.values["canele.1.a.0"] = "1:0:";
  job.ask(told, 1, "a");
  job.talk();
  EXPECT_TRUE(told.ok);
  EXPECT_TRUE(job.client.in_barrier());
  job.hear("cmd=barrier_out\n");
  EXPECT_FALSE(job.client.in_barrier());
  EXPECT_FALSE(job.client.lost());
}

TEST(Pmi1Client, DeathsEndTheQuestionsToTheDead) {
  Fixture job;
  Fixture::Told dead, alive, later;
  job.talk();
  job.ask(dead, 1, "a");
  job.ask(alive, 2, "a");
  job.client.output().clear();
  job.hear("cmd=canele_died rank=1\ncmd=canele_died rank=1\n");
  EXPECT_EQ(job.deaths, std::vector<int>{1}) << "told once";
  EXPECT_TRUE(dead.times == 1 && dead.why == "rank 1 has died") << dead.why;
  job.ask(later, 1, "b");
  EXPECT_TRUE(later.times == 1 && later.why == "rank 1 has died");
  EXPECT_EQ(alive.times, 0);
  job.hear("cmd=get_result rc=-1 msg=x\n");  // of the dead rank
  job.launcher.values["canele.2.a.0"] = "1:0:";
  job.talk();
  EXPECT_TRUE(alive.times == 1 && alive.ok);
}

TEST(Pmi1Client, LeavesAfterTheAnswerThatIsDue) {
  Fixture job;
  Fixture::Told told;
  job.talk();
  job.ask(told, 1, "a");
  job.client.output().clear();
  job.client.finalize();
  job.collect();
  EXPECT_TRUE(told.times == 1 && told.why == "this rank is leaving the job") << told.why;
  EXPECT_EQ(job.client.output(), "");
  job.hear("cmd=get_result rc=-1 msg=x\n");
  EXPECT_EQ(job.client.output(), "cmd=finalize\n");
  job.talk();
  EXPECT_TRUE(job.client.finalized());
}

TEST(Pmi1Client, AbortWaitsForNothing) {
  Fixture job;
  job.talk();
  Fixture::Told told;
  job.ask(told, 1, "a");
  job.client.output().clear();
  job.client.abort(7, "hydra has no word for it");
  EXPECT_EQ(job.client.output(), "cmd=abort exitcode=7\n");
}

TEST(Pmi1Client, AbortTellsOurLauncherTheReason) {
  comm::Pmi1Client client(0, 2);
  client.hear("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes keylen_max=64 vallen_max=1024\n", 0);
  client.hear("cmd=my_kvsname kvsname=canele-run.1.2\n", 0);
  ASSERT_TRUE(client.hello_done());
  client.output().clear();
  client.abort(7, "a = 50 %\nend");
  EXPECT_EQ(client.output(), "cmd=abort exitcode=7 canele_reason=a%20%3d%2050%20%25%0aend\n");
}

constexpr const char* hello =
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes keylen_max=64 vallen_max=1024\n"
    "cmd=my_kvsname kvsname=kvs_1\n";

/// A real descriptor, whose other end the test holds.
struct Connection {
  Connection() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  ~Connection() { close_other(); }
  void say(const std::string& text) {
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Reads until `text` has come, now or before.
  void hear_until(std::string_view text) {
    char bytes[512];
    while (heard.find(text) == std::string::npos)
      heard.append(bytes, static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[1], bytes, sizeof bytes))));
  }
  void close_other() {
    if (ends[1] >= 0) close(std::exchange(ends[1], -1));
  }
  Pmi1Place place() { return {ends[0], 0, 2, 0, 2}; }
  int ends[2] = {-1, -1};
  std::string heard;
};

/// A rank that has completed the first exchange with its launcher.
struct Pmi1Bootstrap : testing::Test {
  void SetUp() override {
    connection.say(hello);
    job = make_pmi1(posix_platform(), connection.place(), soon, &why);
    ASSERT_NE(job, nullptr) << why;
  }
  Connection connection;
  std::string why;
  std::unique_ptr<ProcessBootstrap> job;
};

TEST_F(Pmi1Bootstrap, IsWhoTheLauncherSays) {
  EXPECT_EQ(job->name(), "pmi1");
  EXPECT_EQ(job->size(), 2);
  EXPECT_EQ(job->job(), fingerprint("kvs_1"));
  EXPECT_GE(job->descriptor(), 0);
  connection.say("cmd=finalize_ack\n");
  job->finalize();
}

TEST(Pmi1Join, DoesNotWaitForALauncherForEver) {
  Connection silent;
  std::string why;
  EXPECT_EQ(make_pmi1(posix_platform(), silent.place(), 20 * one_ms, &why), nullptr);
  EXPECT_EQ(why, "the launcher does not answer");
  Connection closed;
  closed.close_other();
  EXPECT_EQ(make_pmi1(posix_platform(), closed.place(), 60 * soon, &why), nullptr);
  EXPECT_EQ(why, "the connection to the launcher is lost");
}

TEST_F(Pmi1Bootstrap, AFenceEnds) {
  connection.say("cmd=put_result rc=0 msg=success\ncmd=barrier_out\n");
  EXPECT_TRUE(job->fence(60 * soon, &why)) << why;
  connection.say("cmd=put_result rc=0 msg=success\n");
  EXPECT_FALSE(job->fence(20 * one_ms, &why));
  EXPECT_EQ(why, "not all 2 ranks have come in the time given; the launcher does not name the missing ones");
  EXPECT_FALSE(job->fence(60 * soon, &why));
  EXPECT_EQ(why, "an earlier wait for all ranks has failed");
}

TEST_F(Pmi1Bootstrap, NamesWhoIsMissingIfTheLauncherShowsIt) {
  int deaths = 0;
  job->on_failure([&deaths](int) { ++deaths; });
  // The survey's answers arrive before its questions: they count only once asked.
  std::atomic<bool> asked{false};
  std::thread launcher([&] {
    connection.hear_until("canele.0.at-fence-1.0 value");
    connection.say("cmd=put_result rc=0 msg=success\n");
    connection.hear_until("cmd=get kvsname=kvs_1 key=canele.0.at-fence-1.0");
    connection.say("cmd=get_result rc=0 value=1:1:AQ\n");
    connection.hear_until("canele.1.at-fence-1.0");
    connection.say("cmd=get_result rc=-1 msg=no\n");
    asked = true;
  });
  EXPECT_FALSE(job->fence(soon, &why));
  launcher.join();
  EXPECT_TRUE(asked);
  EXPECT_EQ(why, "only 1 of 2 ranks have come; rank 1 is missing");
  EXPECT_EQ(deaths, 0);
}

TEST_F(Pmi1Bootstrap, LeavesHydraForGood) {
  connection.say("cmd=finalize_ack\n");
  job->rest();
  connection.hear_until("cmd=finalize\n");
  EXPECT_FALSE(job->resume(60 * soon, &why));
  EXPECT_NE(why.find("mpiexec.hydra lets no process join twice"), std::string::npos) << why;
  job->finalize();
}

TEST(Pmi1Join, CaneleRunSaysHelloAgain) {
  const std::string canele_hello =
      std::string(hello).replace(std::string_view(hello).find("kvs_1"), 5, "canele-run.7.x");
  Connection connection;
  connection.say(canele_hello);
  std::string why;
  const auto job = make_pmi1(posix_platform(), connection.place(), soon, &why);
  ASSERT_NE(job, nullptr) << why;
  for (int life = 1; life < 4; ++life) {
    connection.say("cmd=put_result rc=0 msg=success\ncmd=barrier_out\n");
    EXPECT_TRUE(job->fence(60 * soon, &why)) << why;
    connection.say("cmd=finalize_ack\n");
    job->rest();
    connection.say(canele_hello);
    EXPECT_TRUE(job->resume(60 * soon, &why)) << why;
    connection.hear_until("canele.0.at-fence-" + std::to_string(life) + ".0 value");
  }
  std::thread launcher([&] {  // the survey's answers count only once asked
    connection.hear_until("canele.0.at-fence-4.0 value");
    connection.say("cmd=put_result rc=0 msg=success\n");
    connection.hear_until("cmd=get kvsname=canele-run.7.x key=canele.0.at-fence-4.0");
    connection.say("cmd=get_result rc=-1 msg=no\n");
    connection.hear_until("canele.1.at-fence-4.0");
    connection.say("cmd=get_result rc=-1 msg=no\n");
  });
  EXPECT_FALSE(job->fence(soon, &why));
  launcher.join();
  connection.say("cmd=finalize_ack\n");
  job->rest();
  connection.say(canele_hello);
  EXPECT_TRUE(job->resume(60 * soon, &why)) << why;
  connection.say("cmd=put_result rc=0 msg=success\ncmd=barrier_out\n");
  EXPECT_TRUE(job->fence(60 * soon, &why)) << "a failed wait for all ranks belongs to its own life: " << why;
  connection.say("cmd=finalize_ack\n");
  job->finalize();
}

/// One engine's thread receives the answer for which another engine waits.
TEST_F(Pmi1Bootstrap, WhoWaitsIsToldWhatAnotherThreadHears) {
  std::atomic<bool> met{false};
  std::thread launcher([&] {
    connection.hear_until("cmd=put");
    connection.say("cmd=put_result rc=0 msg=success\n");
    connection.hear_until("cmd=barrier_in");
    connection.say("cmd=barrier_out\n");
  });
  std::thread other([&] {
    while (!met) job->progress(0);
  });
  EXPECT_TRUE(job->fence(std::numeric_limits<std::uint64_t>::max(), &why))
      << why;  // the test's own time limit ends it if nothing wakes it
  met = true;
  other.join();
  launcher.join();
}

TEST_F(Pmi1Bootstrap, ALostLauncherEndsQuestionsOnce) {
  int times = 0;
  job->get(1, "address", 60 * soon, [&times](bool ok, const Blob&, const std::string&) { times += ok ? 100 : 1; });
  EXPECT_EQ(times, 0) << "get never waits";
  connection.close_other();
  EXPECT_TRUE(job->progress(soon));
  EXPECT_EQ(times, 1);
  EXPECT_FALSE(job->progress(one_ms)) << "no thread is woken by a closed connection again and again";
  EXPECT_FALSE(job->put("k", {}, &why));
  EXPECT_FALSE(job->fence(60 * soon, &why));
  EXPECT_EQ(why, "the connection to the launcher is lost");
  job->finalize();
}

TEST_F(Pmi1Bootstrap, TheDeadlineOfAGetWakesTheSleeper) {
  int times = 0;
  job->get(1, "never", 20 * one_ms, [&times](bool ok, const Blob&, const std::string&) { times += ok ? 100 : 1; });
  while (times == 0) job->progress(60 * soon);  // the test's own time limit ends it if nothing wakes it
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace canele::comm
