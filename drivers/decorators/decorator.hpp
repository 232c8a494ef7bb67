// SPDX-License-Identifier: BSD-3-Clause
//
// Decorator: a driver that passes everything on to another one. The decorators override what they change.
//
// Base class for the files of this directory. drivers/driver.hpp gives the threading.
//
//   engine ──calls──▶ Decorator ──calls──▶ inner
//     ▲                 │    ▲               │
//     └────events───────┘    └───events──────┘     inner's DriverContext is InnerContext: the engine's, but for events
//
// The wrapped driver counts its due wakes in a member that the decorator cannot see. A decorator therefore always
// claims that wakes may be due, which costs one more virtual call per send.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "drivers/driver.hpp"

namespace canele::drivers {

/// Options of one decorator, already checked: every option has a value.
using OptionValues = std::map<std::string, double, std::less<>>;

class Decorator : public Driver, protected DriverEvents {
 protected:
  explicit Decorator(std::unique_ptr<Driver> inner) : inner_(std::move(inner)) {}

  Driver& inner() { return *inner_; }
  const Driver& inner() const { return *inner_; }
  DriverContext& context() { return *inner_context_.outer; }
  DriverEvents& engine() { return *inner_context_.outer->events; }

  Status open_impl(DriverContext& context, Address* address, std::string* reason) override {
    inner_context_.take(context, this);
    const Status status = inner_->open(inner_context_, address, reason);
    capabilities_ = inner_->capabilities();
    wakes_due_ = many;
    return status;
  }
  Status connect_impl(Rank peer, std::span<const std::byte> address) override { return inner_->connect(peer, address); }
  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override {
    return inner_->send_inline(peer, head, head_size, body, body_size);
  }
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override {
    return inner_->send_packet(peer, pieces, count, size, token);
  }
  std::span<std::byte> reserve_impl(Rank peer, std::size_t size) override { return inner_->reserve(peer, size); }
  void commit_impl(Rank peer, std::size_t size) override { inner_->commit(peer, size); }
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override {
    return inner_->bulk_send(peer, transfer_id, offset, pieces, count, size, token);
  }
  Status register_memory_impl(Rank peer, RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) override {
    return inner_->register_memory(peer, op, pieces, count, rkey);
  }
  void deregister_impl(std::uint64_t handle) override { inner_->deregister(handle); }
  Status rma_impl(Rank peer, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces,
                  int count, std::size_t size, Token token) override {
    return inner_->rma(peer, op, rkey, offset, pieces, count, size, token);
  }
  int poll_impl(int budget) override { return inner_->poll(budget); }
  int descriptor_impl() const override { return inner_->descriptor(); }
  bool arm_impl(bool on) override {
    if (on) return inner_->arm();
    inner_->disarm();
    return true;
  }
  bool wants_wake_impl(Rank peer) override {
    wakes_due_ = many;
    return inner_->wants_wake(peer);
  }
  void wake_impl(Rank peer) override { inner_->wake(peer); }
  void close_impl() override { inner_->close(); }

  Take packet(Rank from, std::span<const std::byte> bytes) override { return engine().packet(from, bytes); }
  int bulk_destination(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length, iovec* out,
                       int max) override {
    return engine().bulk_destination(from, transfer_id, offset, length, out, max);
  }
  void bulk_written(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length) override {
    engine().bulk_written(from, transfer_id, offset, length);
  }
  void done(Token token, Status status) override { engine().done(token, status); }
  void ready(Rank rank) override { engine().ready(rank); }
  void connected(Rank rank) override {
    share_lines(rank, inner_->shared_lines(rank));
    met(rank, inner_->incarnation_of(rank));
    if (inner_->is_local(rank)) stays_here(rank);
    engine().connected(rank);
  }
  void failed(Rank rank, bool lost, std::string_view reason) override { engine().failed(rank, lost, reason); }

 private:
  static constexpr int many = 1 << 30;

  struct InnerContext final : DriverContext {
    DriverContext* outer = nullptr;
    void take(DriverContext& from, DriverEvents* to) {
      outer = &from;
      rank = from.rank;
      size = from.size;
      job = from.job;
      oversubscribed = from.oversubscribed;
      incarnation = from.incarnation;
      argument = from.argument;
      secret = from.secret;
      events = to;
    }
    std::uint64_t now_ns() override { return outer->now_ns(); }
    std::uint64_t random() override { return outer->random(); }
    std::string setting(std::string_view name, std::string_view fallback) override {
      return outer->setting(name, fallback);
    }
    Rank next_failed_rank() override { return outer->next_failed_rank(); }
    void log(int level, std::string_view text) override { outer->log(level, text); }
  };

  std::unique_ptr<Driver> inner_;
  InnerContext inner_context_;
};

std::unique_ptr<Driver> make_trace(std::unique_ptr<Driver> inner, const OptionValues& options);
std::unique_ptr<Driver> make_delay(std::unique_ptr<Driver> inner, const OptionValues& options);
std::unique_ptr<Driver> make_fault(std::unique_ptr<Driver> inner, const OptionValues& options);
std::unique_ptr<Driver> make_check(std::unique_ptr<Driver> inner, const OptionValues& options);

/// Returns the bytes of `pieces`, one after the other.
std::vector<std::byte> gather(const iovec* pieces, int count, std::size_t size);

}  // namespace canele::drivers
