// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine keeps of multicasts. Of its own it keeps a Multicast, with a Leg for each destination. Of those of
// other ranks it keeps a Cast, with a Forward for each rank that it hands the data to.
//
// Used under the engine's lock, by any thread: by multicast.cpp at the root, and by relay.cpp at every destination.
//
// Envelopes do not travel down the tree. Each destination gets its own from the root, in order with all else that the
// root sends. The envelope names the rank to ask for the data. Only data takes the tree, and it is asked for. In the
// tree a server is a parent, and the ranks that it serves are its children.
//
//   root                             server (a destination itself)           destination
//   Multicast ─┬─ Leg ──cast──────▶ Cast (serves: …)
//              └─ Leg ──cast───────────────────────────────────────────────▶ Cast (server: …)
//                                   Cast ◀──────────want────────────────────  its receive has a buffer
//   bulk_send ────data────────────▶ receive or Stock ──Forward──data────────▶ receive
//              ◀───────────fin────  Cast            ◀──served───────────────  all of it is here
//              ◀───────────fin─────────────────────────────────────────────
//   If the server is gone, or says `elsewhere`, the destination asks the root, from where it has come to.
//
// Rejected: the envelope in the tree, too. It would have to wait at each destination for what the root sent there
// before. What the root sends there next would have to wait for it. Each message of a re-routed subtree could come
// twice. And a withheld envelope would stop those below it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/multicast/shape.hpp"
#include "comm/state/request.hpp"
#include "comm/state/session.hpp"
#include "comm/state/sink.hpp"
#include "comm/wire/wire.hpp"
#include "drivers/driver.hpp"

namespace canele::comm {

struct Cast;
struct DriverSlot;
struct Multicast;

/// A request of the engine's own. When it is finalized, `over` runs under the lock.
struct Internal : Request {
  struct Over : CallOp {
    Internal* owner = nullptr;
  };
  Over over;
};
/// Makes an internal request a send to rank `to`, to be finalized by Context::finish().
void prepare_internal(Internal& request, Context& context, Session& session, int to, void (*over)(Context&, CallOp&));

/// The root's send to one destination.
struct Leg : Internal {
  Multicast* whole = nullptr;
  int index = 0;    ///< as the user numbered it
  int server = -1;  ///< the rank that the destination asks for the data; -1: the root
  std::vector<std::uint32_t> serves;
  bool paid = false;  ///< its envelope may leave
};

/// A multicast of this rank.
struct Multicast : CallOp {
  Request* request = nullptr;  ///< the user's
  std::vector<int> ranks;
  std::vector<std::int32_t> priorities;  ///< of each
  int* outcomes = nullptr;               ///< the user's, or nullptr
  multicast::Shape shape = multicast::Shape::automatic;
  std::uint32_t id = 0;
  std::size_t left = 0;  ///< legs that have not ended
  int error = CANELE_OK;
  std::unique_ptr<Leg[]> legs;
  DriverSlot* shelf = nullptr;  ///< whose peers find the data at `shelved`
  drivers::Exposure shelved;
};

/// Data on its way to a rank that we serve.
struct Forward : Internal {
  Cast* cast = nullptr;
};

/// A rank that we may serve.
struct Served {
  int rank = 0;
  bool listed = false;  ///< by the root
  bool asked = false;
  bool done = false;
  wire::Want want{};
  std::unique_ptr<Forward> forward;
};

/// Memory of the engine for data that is handed on before its receive has a buffer.
struct Stock {
  std::unique_ptr<std::byte[]> memory;  ///< as long as the message
  bool complete = false;
  Request fetch{};
};

/// Moves a stock into the user's buffer, outside the lock.
struct StockCopy : ltask::Task, CallOp {
  Context* context = nullptr;
  Cast* cast = nullptr;
  std::uint64_t copied = 0;
};

/// A multicast of another rank.
struct Cast final : Sink {
  bool bound(Context& context, Request& request) override;
  Peer& source(Context& context) const override;
  bool asks(Context& context, Request& request, Peer& from, std::uint64_t offset) override;
  void ask_again(Context& context, Request& request) override;
  bool outlives(const Peer& peer) const override;
  void landing_begun() override { landing = true; }
  void advanced(Context& context, Request& request) override;
  void fetched(Context& context, const Request& request, Peer& from) override;
  void received(Context& context, Request& request, int outcome) override;

  int root = 0;
  std::uint32_t id = 0;
  bool known = false;      ///< its envelope has come.
  bool elsewhere = false;  ///< the root is to be asked, whichever rank the server is.
  bool over = false;       ///< nothing is handed on any more: a rank that asks is told `elsewhere`.
  bool failed = false;     ///< it will never have all of the data.
  bool landing = false;    ///< data of the server has begun to land.
  bool dropped = false;    ///< its message was refused: what comes is only for the ranks that we serve.
  bool waiting = false;    ///< the receive has its data, and waits until no forward reads it any more.
  int server = -1;
  int outcome = CANELE_OK;      ///< of the receive
  Session* session = nullptr;   ///< of the envelope.
  std::uint64_t send = 0;       ///< the root's name for its leg.
  std::uint64_t length = 0;     ///< of the message
  std::uint64_t available = 0;  ///< bytes that can be handed on
  Request* receive = nullptr;   ///< the user's, once it has a buffer and until it is finalized.
  Request* fetching = nullptr;  ///< the receive, or the stock's, while its data comes as a stream
  std::unique_ptr<Stock> stock;
  std::vector<Served> serves;
  std::unique_ptr<StockCopy> copy;  ///< moves the stock to the receive
};

/// All multicasts of one engine.
struct Casts {
  static constexpr std::size_t most_unknown = 65'536;
  static std::uint64_t key_of(int root, std::uint32_t id) {
    return std::uint64_t{static_cast<std::uint32_t>(root)} << 32 | id;
  }

  std::unordered_map<std::uint64_t, std::unique_ptr<Cast>> of_others;
  std::size_t unknown = 0;                        ///< of those: no envelope has announced them yet
  std::unordered_map<int, std::uint32_t> lowest;  ///< by root: all multicasts below that number have ended everywhere

  std::unordered_map<std::uint32_t, std::unique_ptr<Multicast>> ours;
  std::uint32_t next_id = 1, lowest_id = 1;
  std::deque<bool> ended;  ///< whether ours have ended, from lowest_id on
  std::uint64_t stock_bytes = 0, stock_limit = 0;
  multicast::Shape forced = multicast::Shape::automatic;
  Session own;  ///< of forwards, which are sends of no session of the program
};

/// The multicast that a receive has matched.
inline Cast& cast_of(const Request& request) { return static_cast<Cast&>(*request.receive.sink); }
inline Leg& leg_of(Request& request) { return static_cast<Leg&>(request); }
inline const Leg& leg_of(const Request& request) { return static_cast<const Leg&>(request); }

}  // namespace canele::comm
