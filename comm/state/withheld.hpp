// SPDX-License-Identifier: BSD-3-Clause
//
// Withheld: the sends to one peer that wait for credit, and what the peer has solicited among them.
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
//   [ a … ] cursor [ … d ]            behind the cursor: offered once to all receives. From it on: not yet
//
// The table grows by one bucket per flow (linear hashing, Litwin 1980), so that no single send pays for a rehash.
// Rejected: a list per session beside the list of all. It needs two more words, and a request has none to spare. A
// masked question therefore walks the list of all sends.
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
struct WithheldQuestion {
  const Session* session = nullptr;  ///< local, while it has `number`; nullptr: everything, any session
  std::uint32_t number = 0;
  std::uint64_t tag = 0, mask = 0;
  std::uint64_t stamp = 0;    ///< the receiver's: receives older than this have been solicited.
  bool probe = false;         ///< one message is enough, and the receiver stores it.
  bool done = false;          ///< no receive wants a further message.
  std::uint32_t width = 1;    ///< how many messages to offer at once.
  std::uint64_t offered = 0;  ///< bit mask over the outstanding batch.

  bool everything() const { return session == nullptr; }
  /// Returns whether one message may match both questions.
  bool overlaps(const WithheldQuestion& other) const {
    return session == other.session && ((tag ^ other.tag) & mask & other.mask) == 0;
  }
  bool exact() const { return mask == ~std::uint64_t{0}; }
  bool fits(const Request& request) const {
    return request.session == session && ((request.status_tag ^ tag) & mask) == 0;
  }
};

/// Blocked sends to one peer. Made when the first send has to wait.
struct Withheld {
  static constexpr int most_offered = 64;    ///< in one batch: the answer has one bit for each
  static constexpr int most_questions = 64;  ///< asked by the receiver and not answered

  /// A send that is offered to the receiver.
  struct Offered {
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

  Request* cursor = nullptr;   ///< the first send that has not been offered to all receives; nullptr: none.
  std::uint64_t stamp = 0;     ///< older receives have their answer or get it from the cursor; 0: none has.
  std::uint64_t answered = 0;  ///< questions answered in this episode.
  int question_count = 0;
  WithheldQuestion questions[most_questions];  ///< oldest first

  std::uint64_t batch_stamp = 0;
  bool batch_out = false;  ///< offered and unanswered; until then no send leaves, so none leaves twice.
  bool cursors_turn = false;
  std::uint32_t batch_number = 0;
  std::uint64_t offers = 0;  ///< number of offers so far; for tests
  int batch_size = 0;
  Offered batch[most_offered] = {};

  void append(Request& request);
  void unlink(Request& request);
  bool behind_cursor(const Request& request) const {
    return cursor == nullptr || request.withheld_number < cursor->withheld_number;
  }
  /// first_match() returns the oldest send behind the cursor that fits; next_match() the next one after `request`. Both
  /// return nullptr if there is none.
  Request* first_match(const WithheldQuestion& question) const;
  Request* next_match(const WithheldQuestion& question, const Request& request) const;
  int place_in_batch(const Request& request) const;

 private:
  Request* match_from(const WithheldQuestion& question, Request* request) const;
};

}  // namespace canele::comm
