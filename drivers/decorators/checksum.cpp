// SPDX-License-Identifier: BSD-3-Clause
//
// checksum: adds a CRC32C to every byte that a driver carries, and never delivers data whose sum is wrong.
//
//   packet:   bytes of the engine                          | u8 1 | u32 sum of all before
//   bulk:     u64 transfer id | u64 offset | bytes of the transfer | u8 2 | u32 sum of all before       little-endian
//
// The engine wraps it around every driver but self, if CANELE_CHECKSUM=packets. drivers/driver.hpp gives the threading.
//
// Bulk data goes in packets, too, and is copied once more after its sum is verified. A stream into the user's memory
// would be wrong there before the error was known. For this reason there is no rma() and no memory key either.
//
// Rejected: a sum in the engine's chunks (every driver, and the path of small messages, would pay for it also when it
// is off). Rejected: a sum per message (it would be known after delivery, and would not tell which rail damaged the
// data).
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "drivers/decorators/crc32c.hpp"
#include "drivers/decorators/decorator.hpp"
#include "drivers/decorators/decorators.hpp"

namespace canele::drivers {
namespace {

enum class What : std::uint8_t { packet = 1, bulk = 2 };
constexpr std::size_t bulk_head_size = 16, trailer_size = 5, least_packet = 1024, longest_inline = 256;

/// What is written around one packet; it lives until its driver has sent the packet.
struct Around {
  std::array<std::byte, bulk_head_size> head;
  std::array<std::byte, trailer_size> trailer;
};
struct UnderWay {
  Token token;
  Rank peer;
  std::unique_ptr<Around> around;
};

void put_trailer(std::byte* to, What what, std::uint32_t sum) {
  to[0] = static_cast<std::byte>(what);
  sum = crc32c(sum, to, 1);
  // Little-endian, like everything that the engine writes (comm/wire/wire.hpp).
  std::memcpy(to + 1, &sum, sizeof sum);
}

class Checksum final : public Decorator {
 public:
  explicit Checksum(std::unique_ptr<Driver> wrapped) : Decorator(std::move(wrapped)) {}

 private:
  Status open_impl(DriverContext& outer, Address* address, std::string* reason) override {
    const Status status = Decorator::open_impl(outer, address, reason);
    Capabilities& can = capabilities_;
    if (status == Status::failed) return status;
    if (can.max_packet < least_packet + trailer_size) {
      *reason = "its packets of " + std::to_string(can.max_packet) + " bytes have no room for CANELE_CHECKSUM=packets";
      inner().close();
      return Status::failed;
    }
    can.max_packet -= trailer_size;
    can.max_bulk = can.max_packet - bulk_head_size;
    can.max_inline = can.max_inline > trailer_size ? std::min(can.max_inline, longest_inline) - trailer_size : 0;
    can.get = can.put = can.rma_any_thread = can.rma_by_hardware = false;
    can.rkey_size = 0;
    can.shared_lines = 0;
    return status;
  }

  Status send_inline_impl(Rank peer, const void* head, std::size_t size, const void* body,
                          std::size_t body_size) override {
    std::array<std::byte, longest_inline> line;
    std::memcpy(line.data(), head, size);
    if (body_size != 0) std::memcpy(line.data() + size, body, body_size);
    const std::size_t all = size + body_size;
    put_trailer(line.data() + all, What::packet, crc32c(0, line.data(), all));
    return inner().send_inline(peer, line.data(), all + trailer_size, nullptr, 0);
  }

  Status send_packet_impl(Rank peer, const iovec* pieces, int count, std::size_t size, Token token) override {
    return send(peer, What::packet, nullptr, pieces, count, size, token);
  }

  Status bulk_send_impl(Rank peer, std::uint64_t transfer_id, std::uint64_t offset, const iovec* pieces, int count,
                        std::size_t size, Token token) override {
    const std::uint64_t head[] = {transfer_id, offset};
    static_assert(sizeof head == bulk_head_size);
    return send(peer, What::bulk, head, pieces, count, size, token);
  }

  Status send(Rank peer, What what, const void* head, const iovec* pieces, int count, std::size_t size, Token token) {
    std::unique_ptr<Around> kept = take_around();
    Around& around = *kept;
    std::uint32_t sum = 0;
    pieces_.clear();
    if (head != nullptr) {
      std::memcpy(around.head.data(), head, bulk_head_size);
      pieces_.push_back({around.head.data(), bulk_head_size});
      size += bulk_head_size;
    }
    pieces_.insert(pieces_.end(), pieces, pieces + count);
    for (const iovec& piece : pieces_) sum = crc32c(sum, piece.iov_base, piece.iov_len);
    put_trailer(around.trailer.data(), what, sum);
    pieces_.push_back({around.trailer.data(), trailer_size});
    const Status status =
        inner().send_packet(peer, pieces_.data(), static_cast<int>(pieces_.size()), size + trailer_size, token);
    if (status == Status::pending) {
      under_way_.push_back({token, peer, std::move(kept)});
    } else {
      spare_.push_back(std::move(kept));
    }
    return status;
  }

  std::unique_ptr<Around> take_around() {
    if (spare_.empty()) return std::make_unique<Around>();
    std::unique_ptr<Around> one = std::move(spare_.back());
    spare_.pop_back();
    return one;
  }
  /// Recycles the entries of `under_way_` that are complete.
  template <typename Filter>
  void give_back(Filter is_complete) {
    for (std::size_t i = under_way_.size(); i-- > 0;) {
      if (!is_complete(under_way_[i])) continue;
      spare_.push_back(std::move(under_way_[i].around));
      std::swap(under_way_[i], under_way_.back());
      under_way_.pop_back();
    }
  }
  void done(Token token, Status status) override {
    give_back([&](const UnderWay& one) { return one.token == token; });
    engine().done(token, status);
  }
  void failed(Rank rank, bool lost, std::string_view reason) override {
    give_back([&](const UnderWay& one) { return one.peer == rank; });
    engine().failed(rank, lost, reason);
  }

  std::span<std::byte> reserve_impl(Rank peer, std::size_t size) override {
    reserved_ = inner().reserve(peer, size + trailer_size);
    return reserved_.empty() ? reserved_ : reserved_.first(size);
  }
  void commit_impl(Rank peer, std::size_t size) override {
    if (size == 0) return inner().commit(peer, 0);
    put_trailer(reserved_.data() + size, What::packet, crc32c(0, reserved_.data(), size));
    inner().commit(peer, size + trailer_size);
  }

  Take packet(Rank from, std::span<const std::byte> bytes) override {
    std::uint32_t sum;
    if (bytes.size() <= trailer_size) return damaged(from, bytes.size());
    const std::size_t summed = bytes.size() - sizeof sum;
    std::memcpy(&sum, bytes.data() + summed, sizeof sum);
    if (crc32c(0, bytes.data(), summed) != sum) return damaged(from, bytes.size());
    const auto what = static_cast<What>(bytes[summed - 1]);
    bytes = bytes.first(summed - 1);
    if (what == What::packet) return engine().packet(from, bytes);
    if (what != What::bulk || bytes.size() <= bulk_head_size) return damaged(from, bytes.size());
    return write_bulk(from, bytes);
  }

  Take write_bulk(Rank from, std::span<const std::byte> bytes) {
    std::uint64_t transfer_id, offset;
    std::memcpy(&transfer_id, bytes.data(), sizeof transfer_id);
    std::memcpy(&offset, bytes.data() + sizeof transfer_id, sizeof offset);
    bytes = bytes.subspan(bulk_head_size);
    while (!bytes.empty()) {
      std::array<iovec, 16> pieces;
      const int count =
          engine().bulk_destination(from, transfer_id, offset, bytes.size(), pieces.data(), pieces.size());
      std::size_t part = 0;
      for (int i = 0; i < count; ++i) {
        std::memcpy(pieces[static_cast<std::size_t>(i)].iov_base, bytes.data() + part,
                    pieces[static_cast<std::size_t>(i)].iov_len);
        part += pieces[static_cast<std::size_t>(i)].iov_len;
      }
      if (part == 0) break;  // no receive wants the bytes
      engine().bulk_written(from, transfer_id, offset, part);
      offset += part;
      bytes = bytes.subspan(part);
    }
    return Take::taken;
  }

  /// Reports the reason to the engine, and makes the driver close the peer.
  Take damaged(Rank from, std::size_t size) {
    failed(from, true,
           std::string(capabilities_.name) + ": rank " + std::to_string(from) + " sent a packet of " +
               std::to_string(size) + " bytes whose checksum is wrong: it was damaged on the way");
    return Take::rejected;
  }

  void connected(Rank rank) override {  // without shared lines, which serve rma()
    met(rank, inner().incarnation_of(rank));
    if (inner().is_local(rank)) stays_here(rank);
    engine().connected(rank);
  }

  std::vector<iovec> pieces_;
  std::vector<UnderWay> under_way_;
  std::vector<std::unique_ptr<Around>> spare_;
  std::span<std::byte> reserved_;
};

}  // namespace

std::unique_ptr<Driver> with_checksums(std::unique_ptr<Driver> driver) {
  return std::make_unique<Checksum>(std::move(driver));
}

}  // namespace canele::drivers
