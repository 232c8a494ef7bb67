// SPDX-License-Identifier: BSD-3-Clause
//
// Withheld: the sends to one peer that wait for credit, and what the peer has asked for among them.
//
// Who: protocol/flow_out. Part of Peer.
// Threads: under the engine's lock.
// Surprise: all links lie in the requests, in words that only the transfer of their data uses. Memory that runs out
//     makes the table of flows slow, and nothing fails.
//
//   first ⇄ a ⇄ b ⇄ c ⇄ d ⇄ last      all, oldest first
//           └──────▶ c                flow (session, tag): the oldest is the head, its flow_prev leads to the newest
//               └──────▶ d            another flow
//   bucket ──▶ a ──▶ b                heads whose (session, tag) fall into one bucket
//
//   [ a … ] cursor [ … d ]            behind the cursor: offered once to all receives. From it on: not yet
//
// The table grows by one bucket a flow (linear hashing, Litwin 1980), so that no send pays for all.
// Rejected: a list per session beside it (two more words, and a request has none): a masked question walks all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/core/request.hpp"

namespace canele::comm {

/// The heads of flows, by (session, tag).
class FlowTable {
 public:
  FlowTable() = default;
  ~FlowTable();
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// The oldest withheld send of the flow, or nullptr.
  Request* find(const Session* session, std::uint64_t tag) const;
  /// The newest of its flow joins, or leaves from anywhere in it.
  void add(Request& request);
  void remove(Request& request);

 private:
  static constexpr std::size_t first_size = 64;
  static constexpr int most_segments = 32;
  static std::uint64_t hash(const Session* session, std::uint64_t tag);
  Request*& bucket(std::size_t index);
  Request*& bucket_of(std::uint64_t hash);
  void grow();

  Request* inside_[first_size] = {};        ///< the first segment: it cannot fail
  Request** segments_[most_segments] = {};  ///< segment k has as many buckets as all before it
  std::size_t base_ = first_size;           ///< a power of two: how many buckets there were at the last doubling
  std::size_t split_ = 0;                   ///< buckets below it have been split since
  std::size_t flows_ = 0;
};

/// What the receiver has asked for: sends of a session whose tag fits.
struct WithheldQuestion {
  const Session* session = nullptr;  ///< ours, as long as it has this number; nullptr: everything, of any session
  std::uint32_t number = 0;
  std::uint64_t tag = 0, mask = 0;
  std::uint64_t stamp = 0;    ///< the receiver's: older receives have been asked for
  bool probe = false;         ///< one is enough, and is kept there
  bool done = false;          ///< no receive wants any more
  std::uint32_t width = 1;    ///< how many to offer at once
  std::uint64_t offered = 0;  ///< of the batch that is out, a bit each

  bool everything() const { return session == nullptr; }
  /// A message may fit both.
  bool overlaps(const WithheldQuestion& other) const {
    return session == other.session && ((tag ^ other.tag) & mask & other.mask) == 0;
  }
  bool exact() const { return mask == ~std::uint64_t{0}; }
  bool fits(const Request& request) const {
    return request.session == session && ((request.status_tag ^ tag) & mask) == 0;
  }
};

/// Made when the first send has to wait.
struct Withheld {
  static constexpr int most_offered = 64;    ///< in one batch: a bit each in the answer
  static constexpr int most_questions = 64;  ///< that a receiver may have asked and we have not answered

  /// One that is offered.
  struct Offered {
    Request* request;  ///< nullptr: taken before the answer came
    bool probe;
  };

  Request* first = nullptr;
  Request* last = nullptr;
  std::uint64_t count = 0;
  std::uint64_t next_number = 0;  ///< of sends, in their order
  std::uint64_t credit = 0;       ///< what is left, while Peer::credit is 0
  std::uint64_t since_ns = 0;     ///< when it was empty last
  std::uint32_t episode = 0;      ///< since it was empty last
  FlowTable flows;

  Request* cursor = nullptr;   ///< the first that has not been offered to all; nullptr: there is none
  std::uint64_t stamp = 0;     ///< receives older than it have their answer, or get it from the cursor; 0: none has
  std::uint64_t answered = 0;  ///< questions of this episode
  int question_count = 0;
  WithheldQuestion questions[most_questions];  ///< oldest first

  std::uint64_t batch_stamp = 0;
  bool batch_out = false;  ///< offered and not answered: until then nothing leaves, so that nothing leaves twice
  bool cursors_turn = false;
  std::uint32_t batch_number = 0;
  std::uint64_t offers = 0;  ///< so far; for tests
  int batch_size = 0;
  Offered batch[most_offered] = {};

  void append(Request& request);
  void unlink(Request& request);
  bool behind_cursor(const Request& request) const {
    return cursor == nullptr || request.withheld_number < cursor->withheld_number;
  }
  /// The oldest behind the cursor that fits; the next one after `request`. nullptr: none.
  Request* first_match(const WithheldQuestion& question) const;
  Request* next_match(const WithheldQuestion& question, const Request& request) const;
  int place_in_batch(const Request& request) const;

 private:
  Request* match_from(const WithheldQuestion& question, Request* request) const;
};

}  // namespace canele::comm
