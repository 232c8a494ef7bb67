// SPDX-License-Identifier: BSD-3-Clause
//
// Copies: memory registered for peers, and copies between a peer's registered memory and local memory (RMA).
//
// Used by the ofi driver, by one thread at a time.
//
//   copies_ ──▶ Copy { token, peer, parts_ }
//                        └──▶ [ Part | Part | Part | … ]   each: one piece of the peer's, up to iov_limit local pieces
//                               issued │ next_ → not yet
//
// An rkey's bytes: u16 number of pieces, 6 bytes zero, then for each: u64 address, u64 key, u64 length.
//
// A copy that is not complete may still write into local memory, even after its peer has died. A failure of the peer is
// therefore reported only when the provider has finished all its copies (idle()).
//
// Rejected: one registration over the span of all pieces: it would register the memory between them.
#pragma once

#include <rdma/fi_rma.h>
#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/ofi/endpoint.hpp"

namespace canele::drivers::ofi {

class Copies {
 public:
  static constexpr std::size_t most_pieces = 10;  ///< of an rkey
  static constexpr std::size_t rkey_size = 8 + most_pieces * 24;
  static constexpr std::size_t most_copies = 64;

  struct Finished {
    Rank peer;
    Token token;
    int error;  ///< of libfabric, 0: success
  };

  explicit Copies(Endpoint& endpoint) : endpoint_(endpoint) {}
  ~Copies();

  Status register_memory(RmaOp op, const iovec* pieces, int count, MemoryKey* rkey);
  void deregister(std::uint64_t handle);

  /// Starts a copy. Answers pending, full (too many in flight), or failed (the rkey is malformed).
  Status start(Rank peer, fi_addr_t to, RmaOp op, std::span<const std::byte> rkey, std::uint64_t offset,
               const iovec* pieces, int count, std::size_t size, Token token);
  /// Records that an operation of this object is complete; `error` 0: success.
  void complete(Op& op, int error);
  /// Issues what the provider did not take before.
  void push();
  /// Returns the finished copies one by one; false: no more.
  bool next_finished(Finished* finished);
  /// Cancels the parts for a peer that have not been issued.
  void abandon(Rank peer);
  /// Returns true if the provider holds nothing for this peer.
  bool idle(Rank peer) const;
  bool has_room() const { return copies_.size() < most_copies; }
  /// Returns true if a part could be issued, or a copy is finished.
  bool restless() const { return unissued_ > 0 || finished_ > 0; }

 private:
  struct Piece {
    std::uint64_t address, key, length;
  };
  struct Copy;
  struct Part : Op {
    Part() : Op(Kind::copy) {}
    Copy* whole = nullptr;
    iovec ours[4] = {};
    void* descriptors[4] = {};
    std::size_t count = 0;
    fi_rma_iov theirs = {};
  };
  struct Copy {
    Rank peer;
    fi_addr_t to;
    RmaOp op;
    Token token;
    std::vector<Region> regions;
    std::vector<Part> parts;
    std::size_t next = 0;       ///< first part that has not been issued
    std::size_t in_flight = 0;  ///< parts issued and not complete
    int error = 0;
    bool is_finished() const { return in_flight == 0 && (next == parts.size() || error != 0); }
  };

  static bool read_rkey(std::span<const std::byte> bytes, std::vector<Piece>* pieces);
  bool split(Copy& copy, std::vector<Piece> theirs, std::uint64_t offset, const iovec* ours, int count,
             std::size_t size);
  void issue(Copy& copy);
  void recount();

  Endpoint& endpoint_;
  std::vector<std::unique_ptr<Copy>> copies_;
  std::size_t unissued_ = 0, finished_ = 0;         ///< copies with parts to issue; copies that are complete
  std::vector<std::vector<Region>> registrations_;  ///< by handle - 1
  std::vector<std::uint64_t> free_handles_;
};

}  // namespace canele::drivers::ofi
