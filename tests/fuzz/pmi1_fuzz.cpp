// SPDX-License-Identifier: BSD-3-Clause
//
// What a PMI-1 launcher answers: lines, numbers, blobs in parts.
//
// The launcher here knows the protocol. The input mixes valid answers to the client's last request with any other text,
// so that the client gets past the first exchange.
#include "comm/bootstrap/limits.hpp"
#include "comm/bootstrap/pmi1_client.hpp"
#include "fuzz.hpp"

namespace canele::fuzz {
namespace {

using comm::Blob;
using comm::Pmi1Client;

class Launcher {
 public:
  explicit Launcher(Input& input) : input_(input), client_(0, 4) {}

  void run() {
    for (int i = 0; i < 200 && !input_.empty(); ++i) step();
    client_.lose("the end of the input");
    tell();
    FUZZ_CHECK(asked_ == answered_ && client_.lost() && !client_.loss().empty());
    FUZZ_CHECK(client_.output().empty() && client_.next_time() == Pmi1Client::never);
  }

 private:
  void hear(std::string_view text) {
    // Sends the text in two parts: a line may be cut anywhere.
    const std::size_t cut = text.empty() ? 0 : input_.byte() % text.size();
    client_.hear(text.substr(0, cut), now_);
    client_.hear(text.substr(cut), now_);
  }

  /// Returns the valid answer to the command that waits for one.
  std::string right_answer() {
    const std::string& out = client_.output();
    const std::size_t line = out.rfind("cmd=");
    const std::string command =
        line == std::string::npos ? "" : out.substr(line + 4, out.find_first_of(" \n", line) - line - 4);
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    if (command == "get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n";
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1\n";
    if (command == "put") return "cmd=put_result rc=0 msg=success\n";
    if (command == "get") return "cmd=get_result rc=0 msg=success value=" + value() + "\n";
    return command == "barrier_in" ? "cmd=barrier_out\n" : "cmd=finalize_ack\n";
  }

  /// Returns one part of a blob: ours, or the input's.
  std::string value() {
    if (input_.flag()) return input_.text(input_.byte());
    const Blob blob = copy_of(input_.bytes(input_.byte()));
    std::vector<std::string> values;
    std::string why;
    FUZZ_CHECK(comm::pmi1_parts(0, "k", blob, {64, 64}, &values, &why));
    const std::string chosen = values[part_++ % values.size()];
    check_whole(blob, values);
    return chosen;
  }

  static void check_whole(const Blob& blob, const std::vector<std::string>& values) {
    comm::Pmi1Blob whole;
    for (const std::string& one : values) FUZZ_CHECK(!whole.complete() && whole.add(one));
    FUZZ_CHECK(whole.complete() && whole.take() == blob);
  }

  void tell() {
    for (auto& [deliver, ok, blob, why] : client_.take_news().answers) {
      FUZZ_CHECK(ok || !why.empty());
      FUZZ_CHECK(blob.size() <= comm::longest_blob);
      deliver(ok, std::move(blob), why);
    }
  }

  void ask() {
    const int rank = input_.byte() % 4;
    ++asked_;
    client_.ask({rank, "address", [this](bool, Blob, const std::string&) { ++answered_; }, input_.flag()},
                now_ + input_.byte() * 1'000'000ull, now_);
  }

  void step() {
    const std::uint8_t what = input_.byte() % 12;
    if (what < 4) {
      const std::string text = right_answer();
      client_.output().clear();  // it has been sent
      hear(text);
    } else if (what == 4) {
      hear(input_.text(input_.byte()));
    } else if (what == 5) {
      hear("cmd=" + input_.text(input_.below(40)) + "\n");
    } else if (what == 6) {
      ask();
    } else if (what == 7) {
      now_ += input_.byte() * 1'000'000ull;
      client_.pass_time(now_);
    } else if (what == 8 && client_.hello_done()) {
      std::string why;
      if (!client_.put(input_.text(input_.below(70)), copy_of(input_.bytes(input_.byte())), &why)) {
        FUZZ_CHECK(!why.empty());
      }
    } else if (what == 9 && client_.hello_done()) {
      client_.enter_barrier();
    } else if (what == 10) {
      client_.finalize();
    } else if (what == 11) {
      client_.abort(input_.byte(), input_.text(input_.byte()));
    }
    tell();
    FUZZ_CHECK(!client_.hello_done() || !client_.space().empty());
    for (const int rank : client_.dead()) FUZZ_CHECK(rank >= 0 && rank < 4);
  }

  Input& input_;
  Pmi1Client client_;
  std::uint64_t now_ = 1;
  std::size_t part_ = 0;
  int asked_ = 0, answered_ = 0;
};

}  // namespace
}  // namespace canele::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  canele::fuzz::Input input(data, size);
  canele::fuzz::Launcher(input).run();
  return 0;
}
