// SPDX-License-Identifier: BSD-3-Clause
//
// trace: writes one line for each call and each callback. See decorators.hpp.
//
// drivers/driver.hpp gives the threading. Copies that other threads make (rma_any_thread) are only counted: the ring
// below belongs to the calls that the engine serialises. Polls without an event leave no line.
//
//   lines_:  | entry | entry | entry | …        with keep=N a ring of the last N; next_ is the oldest once it is full
//                       ▲ next_
//
// Rejected: texts in the ring. Entries of numbers cost no allocation per call.
#include <atomic>
#include <cinttypes>
#include <cstdio>

#include "drivers/decorators/decorator.hpp"

namespace canele::drivers {
namespace {

constexpr const char* text_of(Status status) {
  constexpr const char* texts[] = {"ok", "pending", "full", "failed"};
  return texts[static_cast<int>(status)];
}
constexpr const char* text_of(Take take) {
  constexpr const char* texts[] = {"taken", "retry", "rejected"};
  return texts[static_cast<int>(take)];
}

class Trace final : public Decorator {
 public:
  Trace(std::unique_ptr<Driver> wrapped, std::size_t keep) : Decorator(std::move(wrapped)), keep_(keep) {
    lines_.reserve(keep);
  }

 private:
  struct Line {
    std::uint64_t at_ns;
    const char* call;    ///< a literal
    const char* result;  ///< a literal
    Rank rank;
    std::uint64_t size, id, offset;
  };

  void note(const char* call, Rank rank, std::uint64_t size, const char* result, std::uint64_t id = 0,
            std::uint64_t offset = 0) {
    const Line line = {context().now_ns(), call, result, rank, size, id, offset};
    if (keep_ == 0) return write(3, line);
    if (lines_.size() < keep_) {
      lines_.push_back(line);
    } else {
      lines_[next_] = line;
      next_ = (next_ + 1) % keep_;
    }
  }
  void write(int level, const Line& line) {
    char text[200];
    int used = std::snprintf(text, sizeof text, "trace %.*s %" PRIu64 ".%06" PRIu64 " %s rank %d",
                             static_cast<int>(capabilities_.name.size()), capabilities_.name.data(),
                             line.at_ns / 1'000'000'000, line.at_ns / 1000 % 1'000'000, line.call, line.rank);
    const auto add = [&](const char* name, std::uint64_t value) {
      used += std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), " %s %" PRIu64, name, value);
    };
    if (line.size > 0) add("size", line.size);
    if (line.id > 0 || line.offset > 0) add("id", line.id), add("offset", line.offset);
    std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), "%s%s", line.result[0] ? ": " : "",
                  line.result);
    context().log(level, text);
  }
  void write_kept() {
    for (std::size_t i = 0; i < lines_.size(); ++i) write(2, lines_[(next_ + i) % lines_.size()]);
    lines_.clear();
    next_ = 0;
  }
  Status noted(const char* call, Rank rank, std::uint64_t size, Status status, std::uint64_t id = 0,
               std::uint64_t offset = 0) {
    note(call, rank, size, text_of(status), id, offset);
    return status;
  }

  Status connect_impl(Rank peer, std::span<const std::byte> address) override {
    return noted("connect", peer, address.size(), Decorator::connect_impl(peer, address));
  }
  Status send_inline_impl(Rank peer, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override {
    return noted("send_inline", peer, head_size + body_size,
                 Decorator::send_inline_impl(peer, head, head_size, body, body_size));
  }
  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override {
    return noted("send_packet", peer, size, Decorator::send_packet_impl(peer, pieces, count, size, token));
  }
  std::span<std::byte> reserve_impl(Rank peer, std::size_t size) override {
    const auto room = Decorator::reserve_impl(peer, size);
    if (room.empty()) note("reserve", peer, size, "full");
    return room;
  }
  void commit_impl(Rank peer, std::size_t size) override {
    Decorator::commit_impl(peer, size);
    note("commit", peer, size, size == 0 ? "given back" : "ok");
  }
  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override {
    return noted("bulk_send", peer, size,
                 Decorator::bulk_send_impl(peer, transfer_id, offset, pieces, count, size, token), transfer_id, offset);
  }
  Status register_memory_impl(Rank peer, RmaOp op, const iovec* pieces, int count, MemoryKey* rkey) override {
    return noted(op == RmaOp::get ? "register_memory for get" : "register_memory for put", peer, 0,
                 Decorator::register_memory_impl(peer, op, pieces, count, rkey));
  }
  Status rma_impl(Rank peer, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces,
                  int count, std::size_t size, Token token) override {
    const Status status = Decorator::rma_impl(peer, op, rkey, offset, pieces, count, size, token);
    copies_.fetch_add(1, std::memory_order_relaxed);
    if (capabilities_.rma_any_thread) return status;
    return noted(op == RmaOp::get ? "get" : "put", peer, size, status, 0, offset);
  }
  bool arm_impl(bool on) override {
    const bool armed = Decorator::arm_impl(on);
    note(on ? "arm" : "disarm", context().rank, 0, on && !armed ? "work is pending" : "ok");
    return armed;
  }
  void close_impl() override {
    note("close", context().rank, 0, "");
    write_kept();
    if (copies_ > 0) context().log(3, "trace: " + std::to_string(copies_) + " remote copies");
    Decorator::close_impl();
  }

  Take packet(Rank from, std::span<const std::byte> bytes) override {
    const Take take = Decorator::packet(from, bytes);
    note("packet", from, bytes.size(), text_of(take));
    return take;
  }
  int bulk_destination(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length, iovec* out,
                       int max) override {
    const int count = Decorator::bulk_destination(from, transfer_id, offset, length, out, max);
    note("bulk_destination", from, length, count > 0 ? "ok" : "not wanted", transfer_id, offset);
    return count;
  }
  void bulk_written(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length) override {
    note("bulk_written", from, length, "", transfer_id, offset);
    Decorator::bulk_written(from, transfer_id, offset, length);
  }
  void done(Token token, Status status) override {
    note("done", context().rank, 0, text_of(status), reinterpret_cast<std::uintptr_t>(token));
    Decorator::done(token, status);
  }
  void ready(Rank rank) override {
    note("ready", rank, 0, "");
    Decorator::ready(rank);
  }
  void connected(Rank rank) override {
    note("connected", rank, 0, "");
    Decorator::connected(rank);
  }
  void failed(Rank rank, bool lost, std::string_view reason) override {
    note("failed", rank, 0, lost ? "lost" : "not lost");
    write_kept();
    Decorator::failed(rank, lost, reason);
  }

  const std::size_t keep_;
  std::vector<Line> lines_;
  std::size_t next_ = 0;
  std::atomic<std::uint64_t> copies_{0};
};

}  // namespace

std::unique_ptr<Driver> make_trace(std::unique_ptr<Driver> inner, const OptionValues& options) {
  return std::make_unique<Trace>(std::move(inner), static_cast<std::size_t>(options.at("keep")));
}

}  // namespace canele::drivers
