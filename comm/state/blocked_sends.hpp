// SPDX-License-Identifier: BSD-3-Clause
//
// BlockedSends: the sends to one peer that wait for credit, and what the peer has solicited among them.
//
// Used by protocol/credit_sender; part of Peer. Called by the thread that holds the engine's lock.
//
// All links lie in the requests, in words that otherwise only the transfer of their data uses. If memory runs out, the
// table of flows becomes slower; nothing fails.
//
//   first ⇄ a ⇄ b ⇄ c ⇄ d ⇄ last      all, oldest first
//           └──────▶ c                flow (session, tag): the oldest is the head, its flow_prev leads to the newest
//               └──────▶ d            another flow
//   bucket ──▶ a ──▶ b                heads whose (session, tag) fall into one bucket
//
//   [ a … ] cursor [ … d ]            behind the cursor: advertised once to all receives. From it on: not yet
//
// The table grows by one bucket per flow (linear hashing, Litwin 1980), so that no single send pays for a rehash.
// Rejected: a list per session beside the list of all. It needs two more words, and a request has none to spare. A
// masked solicitation therefore walks the list of all sends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/state/request.hpp"

namespace canele::comm {

/// Hash table of the heads of flows, by (session, tag).
class FlowTable {
 public:
  FlowTable() = default;
  ~FlowTable();
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// Returns the oldest blocked send of the flow, or nullptr.
  Request* find(const Session* session, std::uint64_t tag) const;
  /// add() appends the request to its flow as the newest. remove() takes it out of any position.
  void add(Request& request);
  void remove(Request& request);

 private:
  static constexpr std::size_t first_size = 64;
  static constexpr int most_segments = 32;
  static std::uint64_t hash(const Session* session, std::uint64_t tag);
  Request*& bucket(std::size_t index);
  Request*& bucket_of(std::uint64_t hash);
  void grow();

  Request* inside_[first_size] = {};        ///< the first segment: its allocation cannot fail.
  Request** segments_[most_segments] = {};  ///< segment k has as many buckets as all before it.
  std::size_t base_ = first_size;           ///< number of buckets at the last doubling, a power of two.
  std::size_t split_ = 0;                   ///< buckets below it have been split since then.
  std::size_t flows_ = 0;
};

/// What the receiver has solicited: sends of one session whose tags match under a mask.
struct Solicitation {
  const Session* session = nullptr;  ///< local, while it has `number`; nullptr: everything, any session
  std::uint32_t number = 0;
  std::uint64_t tag = 0, mask = 0;
  std::uint64_t solicit_id = 0;  ///< the receiver's: receives older than this have been solicited.
  bool probe = false;            ///< one message is enough, and the receiver stores it.
  bool done = false;             ///< no receive wants a further message.
  std::uint32_t width = 1;       ///< how many messages to advertise at once.
  std::uint64_t advertised = 0;  ///< bit mask over the outstanding batch.

  bool everything() const { return session == nullptr; }
  /// Returns whether one message may match both solicitations.
  bool overlaps(const Solicitation& other) const {
    return session == other.session && ((tag ^ other.tag) & mask & other.mask) == 0;
  }
  bool exact() const { return mask == ~std::uint64_t{0}; }
  bool fits(const Request& request) const {
    return request.session == session && ((request.status_tag ^ tag) & mask) == 0;
  }
};

/// Blocked sends to one peer. Made when the first send has to wait.
struct BlockedSends {
  static constexpr int most_advertised = 64;     ///< in one batch: the reply has one bit for each
  static constexpr int most_solicitations = 64;  ///< asked by the receiver and not answered

  /// A send that is advertised to the receiver.
  struct Advertised {
    Request* request;  ///< nullptr: taken before the answer came
    bool probe;
  };

  Request* first = nullptr;
  Request* last = nullptr;
  std::uint64_t count = 0;
  std::uint64_t next_number = 0;  ///< of sends, in their order.
  std::uint64_t credit = 0;       ///< what is left, while Peer::credit is 0.
  std::uint64_t since_ns = 0;     ///< when this list was last empty.
  std::uint32_t episode = 0;      ///< number of times that the list stopped being empty.
  FlowTable flows;

  Request* cursor = nullptr;     ///< the first send that has not been advertised to all receives; nullptr: none.
  std::uint64_t solicit_id = 0;  ///< older receives have their answer or get it from the cursor; 0: none has.
  std::uint64_t answered = 0;    ///< solicitations answered in this episode.
  int solicitation_count = 0;
  Solicitation solicitations[most_solicitations];  ///< oldest first

  std::uint64_t batch_solicit_id = 0;
  bool batch_out = false;  ///< advertised, without a reply yet; until then no send leaves, so none leaves twice.
  bool cursors_turn = false;
  std::uint32_t batch_number = 0;
  std::uint64_t advertised = 0;  ///< number of blocked envelopes so far; for tests
  int batch_size = 0;
  Advertised batch[most_advertised] = {};

  void append(Request& request);
  void unlink(Request& request);
  bool behind_cursor(const Request& request) const {
    return cursor == nullptr || request.blocked_number < cursor->blocked_number;
  }
  /// first_match() returns the oldest send behind the cursor that fits; next_match() the next one after `request`. Both
  /// return nullptr if there is none.
  Request* first_match(const Solicitation& solicitation) const;
  Request* next_match(const Solicitation& solicitation, const Request& request) const;
  int place_in_batch(const Request& request) const;

 private:
  Request* match_from(const Solicitation& solicitation, Request* request) const;
};

}  // namespace canele::comm
