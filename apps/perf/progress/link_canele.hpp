// SPDX-License-Identifier: BSD-3-Clause
//
// Link, by the native API. Threads: as in link.hpp. No call allocates memory or looks anything up.
#pragma once

#include <canele/post.h>

#include <canele/canele.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace canele::perf::progress {

class Link {
 public:
  using Request = canele_request_t;

  Link(canele::engine& engine, canele::session& session)
      : engine_(engine), session_(session.native()), rank_(engine.rank()), size_(engine.size()) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Ranks on this host, and the index of this rank among them.
  int local_rank() const { return engine_.local_rank(); }
  int local_size() const { return engine_.local_size(); }

  canele::engine& engine() { return engine_; }

  /// Ends the job, with this text on stderr.
  [[noreturn]] void abort(const std::string& why) { engine_.abort(1, why.c_str()); }

  void isend(int to, int tag, const void* data, std::size_t size, Request& request) {
    canele::detail::check(canele_isend(session_, to, static_cast<std::uint64_t>(tag), data, size, &request),
                          "canele_isend");
  }
  void irecv(int from, int tag, void* data, std::size_t size, Request& request) {
    canele::detail::check(
        canele_irecv(session_, from, static_cast<std::uint64_t>(tag), CANELE_TAG_EXACT, data, size, &request),
        "canele_irecv");
  }
  void barrier() { canele::detail::check(canele_barrier(session_), "canele_barrier"); }
  /// Blocks in canele_queue_wait until the message is here.
  void receive_by_queue(int from, int tag, void* data, std::size_t size) {
    canele_post_options_t options{};
    options.struct_size = sizeof options;
    options.done.kind = CANELE_COMPLETE_QUEUE;
    options.done.object = &queue_;
    const canele_data_t into = canele_data_contiguous(data, size);
    Request request{};
    canele::detail::check(canele_post_receive(session_, from, static_cast<std::uint64_t>(tag), CANELE_TAG_EXACT, &into,
                                              &options, &request),
                          "canele_post_receive");
    canele_entry_t entry{};
    const int taken = canele_queue_wait(engine_.native(), &queue_, &entry, 1, UINT64_MAX);
    canele::detail::check(taken < 0 ? taken : entry.error, "canele_queue_wait");
  }
  bool test(Request& request) {
    int done = 0;
    canele::detail::check(canele_test(&request, &done, nullptr), "canele_test");
    return done != 0;
  }
  void wait(Request& request) { canele::detail::check(canele_wait(&request, nullptr), "canele_wait"); }

 private:
  canele::engine& engine_;
  canele_session_t* session_;
  int rank_, size_;
  canele_queue_t queue_{};
};

}  // namespace canele::perf::progress
