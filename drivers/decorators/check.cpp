// SPDX-License-Identifier: BSD-3-Clause
//
// check: watches both sides of the contract and reports each violation, with the call and the rank. See decorators.hpp.
//
// Called as drivers/driver.hpp says of a driver. An rma() by another thread is only inspected, never recorded.
//
//   peers_:  rank ──▶ asked, up, failed, owed             tokens_:  token ──▶ rank      (one entry per operation)
//   granted_: (rank, transfer id) ──▶ bytes that bulk_destination() gave and bulk_written() has not taken back
//
// It repairs nothing: after the report, a wrong call is passed on unchanged. Reports end after most_reports.
#include <atomic>
#include <set>
#include <unordered_map>

#include "drivers/decorators/decorator.hpp"

namespace canele::drivers {
namespace {

constexpr int most_reports = 100;

class Check final : public Decorator {
 public:
  explicit Check(std::unique_ptr<Driver> wrapped) : Decorator(std::move(wrapped)) {}

 private:
  struct Peer {
    bool asked = false, up = false, failed = false, owed = false;
  };

  void report(std::string_view who, std::string_view call, Rank rank, std::string_view what) {
    if (reports_ == most_reports) return;
    ++reports_;
    std::string text = "check: " + std::string(capabilities_.name) + ": " + std::string(who) + ": " +
                       std::string(call) + ", rank " + std::to_string(rank) + ": " + std::string(what);
    if (reports_ == most_reports) text += " (further reports are left out)";
    context().log(0, text);
  }
  void by_driver(std::string_view call, Rank rank, std::string_view what) { report("driver", call, rank, what); }
  void by_engine(std::string_view call, Rank rank, std::string_view what) { report("engine", call, rank, what); }

  // ------------------------------------------------------------------------------------------- calls of the engine

  Status open_impl(DriverContext& outer, Address* address, std::string* reason) override {
    const Status status = Decorator::open_impl(outer, address, reason);
    if (status == Status::pending || status == Status::full) by_driver("open", outer.rank, "answers ok or failed only");
    if (status == Status::failed && reason->empty()) by_driver("open", outer.rank, "failed without a reason");
    if (status == Status::ok && address->size() > 512) by_driver("open", outer.rank, "an address over 512 bytes");
    const Capabilities& can = capabilities_;
    if (status == Status::ok && can.wake_up != WakeUp::none && inner().descriptor() < 0) {
      by_driver("descriptor", outer.rank, "wake_up is declared, and there is no descriptor");
    }
    open_ = status == Status::ok;
    return status;
  }
  Status connect_impl(Rank rank, std::span<const std::byte> address) override {
    begin("connect", rank);
    Peer& peer = peers_[rank];
    if (peer.asked) by_engine("connect", rank, "a second time; once per peer");
    peer.asked = true;
    return Decorator::connect_impl(rank, address);
  }
  void begin(std::string_view call, Rank rank) {
    if (!open_) by_engine(call, rank, "the driver is not open");
    if (rank < 0 || rank >= context().size) by_engine(call, rank, "no such rank");
  }
  void begin_send(std::string_view call, Rank rank) {
    begin(call, rank);
    if (reserved_ >= 0) by_engine(call, rank, "while a reservation is open");
  }
  /// Checks the answer of a send.
  Status end(std::string_view call, Rank rank, Status status) {
    Peer& peer = peers_[rank];
    if (status == Status::full) peer.owed = true;
    if (peer.failed && status != Status::failed) by_driver(call, rank, "after failed(), it must answer failed");
    return status;
  }
  Status end(std::string_view call, Rank rank, Status status, Token token) {
    if (status == Status::pending) tokens_.emplace(token, rank);
    return end(call, rank, status);
  }

  Status send_inline_impl(Rank rank, const void* head, std::size_t head_size, const void* body,
                          std::size_t body_size) override {
    begin_send("send_inline", rank);
    const std::size_t size = head_size + body_size;
    if (size == 0 || size > capabilities_.max_inline) by_engine("send_inline", rank, "0 bytes, or over max_inline");
    const Status status = Decorator::send_inline_impl(rank, head, head_size, body, body_size);
    if (status == Status::pending) by_driver("send_inline", rank, "answered pending");
    return end("send_inline", rank, status);
  }
  Status send_packet_impl(Rank rank, const iovec* pieces, int count, std::size_t size, Token token) override {
    begin_send("send_packet", rank);
    check_pieces("send_packet", rank, pieces, count, size);
    if (size > capabilities_.max_packet) by_engine("send_packet", rank, "over max_packet");
    return end("send_packet", rank, Decorator::send_packet_impl(rank, pieces, count, size, token), token);
  }
  void check_pieces(std::string_view call, Rank rank, const iovec* pieces, int count, std::size_t size) {
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += pieces[i].iov_len;
    if (sum != size || size == 0) by_engine(call, rank, "the pieces do not add up to the size, or are empty");
  }
  std::span<std::byte> reserve_impl(Rank rank, std::size_t size) override {
    begin("reserve", rank);
    if (reserved_ >= 0) by_engine("reserve", rank, "a second reservation; one may be open");
    const auto room = Decorator::reserve_impl(rank, size);
    Peer& peer = peers_[rank];
    if (room.empty()) {
      peer.owed = peer.owed || !peer.failed;
      return room;
    }
    if (room.size() < size) by_driver("reserve", rank, "less room than asked for");
    if (peer.failed) by_driver("reserve", rank, "room after failed()");
    reserved_ = rank;
    reserved_size_ = size;
    return room;
  }
  void commit_impl(Rank rank, std::size_t size) override {
    if (reserved_ != rank) by_engine("commit", rank, "no reservation is open for it");
    if (size > reserved_size_) by_engine("commit", rank, "more than was reserved");
    reserved_ = -1;
    Decorator::commit_impl(rank, size);
  }
  Status bulk_send_impl(Rank rank, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override {
    begin_send("bulk_send", rank);
    check_pieces("bulk_send", rank, pieces, count, size);
    if (size > capabilities_.max_bulk) by_engine("bulk_send", rank, "over max_bulk");
    const Status status = Decorator::bulk_send_impl(rank, transfer_id, offset, pieces, count, size, token);
    if (status == Status::pending && capabilities_.memory_only) {
      by_driver("bulk_send", rank, "a memory_only driver answered pending");
    }
    return end("bulk_send", rank, status, token);
  }
  Status rma_impl(Rank rank, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset, const iovec* pieces,
                  int count, std::size_t size, Token token) override {
    const Status status = Decorator::rma_impl(rank, op, rkey, offset, pieces, count, size, token);
    if (!capabilities_.rma_any_thread) return end("rma", rank, status, token);
    if (status == Status::pending || status == Status::full) wrong_copy_.store(true, std::memory_order_relaxed);
    return status;
  }
  int poll_impl(int budget) override {
    if (polling_) by_engine("poll", context().rank, "from inside a call back");
    if (!open_) by_engine("poll", context().rank, "the driver is not open");
    if (wrong_copy_.exchange(false, std::memory_order_relaxed)) {
      by_driver("rma", context().rank, "with rma_any_thread it answers ok or failed");
    }
    polling_ = true;
    reported_ = false;
    const int events = Decorator::poll_impl(budget);
    polling_ = false;
    if (events == 0 && reported_) by_driver("poll", context().rank, "answered 0 although it reported something");
    return events;
  }
  bool arm_impl(bool on) override {
    if (polling_) by_engine(on ? "arm" : "disarm", context().rank, "from inside a call back");
    return Decorator::arm_impl(on);
  }
  void close_impl() override {
    if (polling_) by_engine("close", context().rank, "from inside a call back");
    if (!open_) by_engine("close", context().rank, "the driver is not open");
    open_ = false;
    closing_ = true;
    Decorator::close_impl();
  }

  // ------------------------------------------------------------------------------------------ callbacks of the driver

  Peer& called(std::string_view call, Rank rank, bool must_be_up) {
    if (closing_) by_driver(call, rank, "from close()");
    if (!polling_ && !closing_) by_driver(call, rank, "outside poll()");
    if (rank < 0 || rank >= context().size) by_driver(call, rank, "no such rank");
    Peer& peer = peers_[rank];
    if (peer.failed) by_driver(call, rank, "after failed()");
    if (must_be_up && !peer.up) by_driver(call, rank, "before connected()");
    return peer;
  }
  void end_peer(Rank rank) {
    peers_[rank].failed = true;
    std::erase_if(tokens_, [rank](const auto& entry) { return entry.second == rank; });
    std::erase_if(granted_, [rank](const auto& entry) { return entry.first.first == rank; });
  }

  Take packet(Rank from, std::span<const std::byte> bytes) override {
    called("packet", from, true);
    if (bytes.empty() || bytes.size() > capabilities_.max_packet)
      by_driver("packet", from, "0 bytes, or over max_packet");
    const Take take = Decorator::packet(from, bytes);
    reported_ = reported_ || take != Take::retry;
    if (take == Take::rejected) end_peer(from);
    return take;
  }
  int bulk_destination(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length, iovec* out,
                       int max) override {
    called("bulk_destination", from, true);
    if (length == 0 || max <= 0) by_driver("bulk_destination", from, "asks for nothing");
    const int count = Decorator::bulk_destination(from, transfer_id, offset, length, out, max);
    std::uint64_t covered = 0;
    for (int i = 0; i < count; ++i) covered += out[i].iov_len;
    if (count > max || covered > length) by_engine("bulk_destination", from, "more than was asked for");
    if (count > 0 && covered == 0) by_engine("bulk_destination", from, "pieces without bytes");
    if (count > 0) granted_[{from, transfer_id}] += covered;
    return count;
  }
  void bulk_written(Rank from, std::uint64_t transfer_id, std::uint64_t offset, std::uint64_t length) override {
    called("bulk_written", from, true);
    const auto found = granted_.find({from, transfer_id});
    if (found == granted_.end() || found->second < length) {
      by_driver("bulk_written", from, "more than bulk_destination() gave");
    } else if ((found->second -= length) == 0) {
      granted_.erase(found);
    }
    reported_ = true;
    Decorator::bulk_written(from, transfer_id, offset, length);
  }
  void done(Token token, Status status) override {
    reported_ = true;
    const auto found = tokens_.find(token);
    const Rank rank = found == tokens_.end() ? -1 : found->second;
    if (found == tokens_.end()) {
      by_driver("done", rank, "a token that is not out: given back twice, or after failed()");
    } else {
      tokens_.erase(found);
    }
    if (!polling_) by_driver("done", rank, "outside poll()");
    if (status != Status::ok && status != Status::failed) by_driver("done", rank, "neither ok nor failed");
    Decorator::done(token, status);
  }
  void ready(Rank rank) override {
    Peer& peer = called("ready", rank, false);
    reported_ = true;
    if (!peer.owed) by_driver("ready", rank, "without a full before it");
    peer.owed = false;
    Decorator::ready(rank);
  }
  void connected(Rank rank) override {
    Peer& peer = called("connected", rank, false);
    reported_ = true;
    if (peer.up) by_driver("connected", rank, "a second time");
    peer.up = true;
    Decorator::connected(rank);
  }
  void failed(Rank rank, bool lost, std::string_view reason) override {
    called("failed", rank, false);
    reported_ = true;
    if (reason.empty()) by_driver("failed", rank, "without a reason");
    end_peer(rank);
    Decorator::failed(rank, lost, reason);
  }

  std::map<Rank, Peer> peers_;
  std::unordered_multimap<Token, Rank> tokens_;
  std::map<std::pair<Rank, std::uint64_t>, std::uint64_t> granted_;
  Rank reserved_ = -1;
  std::size_t reserved_size_ = 0;
  int reports_ = 0;
  bool open_ = false, polling_ = false, closing_ = false;
  bool reported_ = false;  ///< in this poll; a packet that the engine answers `retry` is no event
  std::atomic<bool> wrong_copy_{false};
};

}  // namespace

std::unique_ptr<Driver> make_check(std::unique_ptr<Driver> inner, const OptionValues&) {
  return std::make_unique<Check>(std::move(inner));
}

}  // namespace canele::drivers
