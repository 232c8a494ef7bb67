// SPDX-License-Identifier: BSD-3-Clause
//
// FuzzJob: one real engine, rank 0 of 3, over drivers without a fabric. Requests are freed as soon as the library no
// longer accesses them.
//
// One thread; the engine is stepped by hand. Rank 1 is hostile and rank 2 is honest: whatever rank 1 sends, the
// messages of rank 2 arrive.
#pragma once

#include <canele/one_sided.h>

#include <list>
#include <memory>
#include <set>

#include "comm/api/api.hpp"
#include "comm/engine/engine.hpp"
#include "comm/registry/registry.hpp"
#include "wire_driver.hpp"

namespace canele::fuzz {

inline constexpr int hostile = 1, honest = 2, ranks = 3;

/// A launcher that has already brought all ranks together.
class FuzzBootstrap final : public comm::Bootstrap {
 public:
  explicit FuzzBootstrap(std::shared_ptr<Bytes> address_of_others) : others_(std::move(address_of_others)) {}
  std::string_view name() const override { return "fuzz"; }
  int rank() const override { return 0; }
  int size() const override { return ranks; }
  int local_rank() const override { return 0; }
  int local_size() const override { return ranks; }
  std::uint64_t job() const override { return 42; }
  const std::string& host() const override { return host_; }
  bool put(std::string_view key, const comm::Blob& blob, std::string*) override {
    if (key == "address" && others_->empty()) *others_ = blob;
    return true;
  }
  bool commit_and_fence(std::uint64_t, std::string*) override { return true; }
  void get(int, std::string_view, std::uint64_t, Deliver deliver) override { deliver(true, *others_, ""); }
  bool fence(std::uint64_t, std::string*) override { return true; }
  void on_failure(std::function<void(int)>) override {}
  bool has_died(int) const override { return false; }
  void abort(int, std::string_view) override {}
  void finalize() override {}

 private:
  std::shared_ptr<Bytes> others_;
  std::string host_ = "here";
};

/// One request with its memory.
struct Post {
  canele_request_t request{};
  std::unique_ptr<std::byte[]> memory;
  std::size_t length = 0;
  iovec halves[2];
  canele_iov_t vector{halves, 2};
  bool receives = false;

  comm::Request& state() { return comm::request_of(&request); }
};

class FuzzJob {
 public:
  struct Options {
    std::vector<Like> drivers = {Like::shm};
    bool joined = false;  ///< used together
    std::string strategy = "aggregate";
    Bytes address_of_others = {};  ///< empty: equal to ours
    bool short_of_memory = false;  ///< for unexpected messages: as little as an engine accepts
  };
  explicit FuzzJob(const Options& options);
  /// Ends the ranks, then the engine. All requests must have ended, and all their memory must be free.
  ~FuzzJob();
  FuzzJob(const FuzzJob&) = delete;
  FuzzJob& operator=(const FuzzJob&) = delete;

  comm::Engine& engine() { return *engine_; }
  comm::Peer& peer(int rank) { return engine_->peer(rank); }
  WireDriver& driver(std::size_t which) { return *made()[which % made().size()]; }
  canele_session_t* session(std::size_t which) { return sessions_[which % 2]; }  ///< "s" or "t"
  std::size_t posts() const { return posts_.size(); }
  Post& post(std::size_t which) { return *std::next(posts_.begin(), static_cast<std::ptrdiff_t>(which)); }

  /// Steps until the drivers have delivered all their events; frees the requests that have ended.
  void settle();
  void send(std::size_t session, int to, std::uint64_t tag, std::size_t length, const canele_send_options_t& options,
            bool in_two);
  /// Sends a multicast to both other ranks.
  void multicast(std::size_t session, std::uint64_t tag, std::size_t length, int shape);
  /// Lets rank 2 announce a multicast to us: rank 1 is our parent, or our child. Its data never comes.
  void honest_multicast(std::uint64_t tag, std::size_t length, std::uint32_t id, bool is_child, bool is_parent);
  void receive(std::size_t session, int from, std::uint64_t tag, std::uint64_t mask, std::size_t length, bool late,
               bool in_two);
  void probe(std::size_t session, int from, std::uint64_t tag, std::uint64_t mask, bool take);
  void bind(Post& post, std::size_t length);

  static constexpr std::size_t regions = 2;  ///< memory of ours that rank 1 knows; the second may only be read
  comm::one_sided::Region& region(std::size_t which) {
    return *reinterpret_cast<comm::one_sided::Region*>(memories_[which].handle);
  }
  /// Accesses memory of rank 1, or notifies it.
  void access(comm::one_sided::AccessKind kind, std::size_t lane, std::uint64_t offset, std::size_t length,
              std::uint8_t variant);
  /// Revokes a region, and registers it again.
  void revoke(std::size_t which);

 private:
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    canele_memory_t* handle = nullptr;
  };
  void open_memory();
  void register_memory(std::size_t which);
  void close_memory();

  Post& add(std::size_t length, bool receives);
  canele_data_t describe(Post& post, bool in_two);
  void honest_message_arrives();
  void end_all();

  FuzzPlatform platform_;
  std::unique_ptr<comm::Engine> engine_;
  std::vector<canele_session_t*> sessions_;
  std::list<Post> posts_;
  std::set<std::uint32_t> honest_ids_;
  Memory memories_[regions];
  canele_key_t* key_ = nullptr;  ///< of memory of rank 1
  canele_lane_t* lane_ = nullptr;
  canele_completion_counter_t arrived_{};
  canele_queue_t entries_{};
};

}  // namespace canele::fuzz
