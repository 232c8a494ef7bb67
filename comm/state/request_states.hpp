// SPDX-License-Identifier: BSD-3-Clause
//
// States of a request, and the transitions that are allowed in each direction.
//
// transition() in state/request.hpp changes the state and asserts the tables below. Changed by the thread that posts,
// and then under the engine's lock. Only `listed` is entered and left without the lock: see api/event_api.cpp.
//
//     send:        event ▶ next state
//     idle         post ▶ posted; begin ▶ begun; callback of a completion queue ▶ listed
//     begun        post ▶ posted; sent within its post, or completed by the program ▶ idle
//     posted       no credit ▶ blocked; eager sent ▶ idle; RTS or synchronous sent ▶ moving
//     blocked      credit ▶ posted; solicited ▶ advertising; CTS or FIN after all ▶ moving
//     advertising  packet sent ▶ advertised; peer failed ▶ posted, whose backlog or packet ends it
//     advertised   taken, CTS or FIN ▶ moving; not taken ▶ blocked
//     moving       ACK, FIN or last byte ▶ idle; FIN while a rail has the last bytes ▶ draining
//     draining     rail has let go ▶ idle
//     listed       taken out of the queue ▶ idle
//     A send that has ended while a device reads its data: idle ▶ moving ▶ idle
//
//     receive:         event ▶ next state
//     idle             post ▶ posted; matched probe ▶ matched_unbound; relay buffer ▶ moving; queue ▶ listed
//     posted           eager or cancel ▶ idle; unbound match ▶ matched_unbound; RTS or claimed RTR ▶ moving
//     matched_unbound  bind ▶ posted, then as any match; end of the engine ▶ idle
//     moving           last byte, or source lost ▶ idle
//     listed           taken out of the queue ▶ idle
//
// A failed peer leads to idle from every other state of a send. Whether a task copies (Request::copying) is no state:
// a copy that has failed streams while its task still has some steps to go.
#pragma once

#include <cstdint>

#include "comm/state/transitions.hpp"

namespace canele::comm {

/// States of both directions, because a call that gets a request looks at its state before its direction.
enum class RequestStage : std::uint8_t {
  idle,             ///< finalized, or never posted.
  begun,            ///< pending by canele_request_begin, but not posted yet: see api/begun_api.cpp.
  posted,           ///< submitted; a send: in the backlog, or in a packet.
  blocked,          ///< a send that waits for credit.
  advertising,      ///< blocked, with its blocked envelope in the backlog or in a packet.
  advertised,       ///< blocked, and the peer has its blocked envelope.
  matched_unbound,  ///< an unbound receive that has matched its message.
  moving,           ///< data moves (rendezvous), or a synchronous send waits for its acknowledgement.
  draining,         ///< a send whose receiver has all of the data, but a rail may still use the memory.
  listed            ///< finalized, and in a completion queue until the program takes it out.
};
inline constexpr int request_stages = 10;

inline constexpr Transitions<RequestStage, request_stages> send_transitions{
    {RequestStage::idle, {RequestStage::posted, RequestStage::begun, RequestStage::moving, RequestStage::listed}},
    {RequestStage::begun, {RequestStage::idle, RequestStage::posted}},
    {RequestStage::posted, {RequestStage::idle, RequestStage::blocked, RequestStage::moving}},
    {RequestStage::blocked,
     {RequestStage::idle, RequestStage::posted, RequestStage::advertising, RequestStage::moving}},
    {RequestStage::advertising, {RequestStage::posted, RequestStage::advertised}},
    {RequestStage::advertised, {RequestStage::idle, RequestStage::blocked, RequestStage::moving}},
    {RequestStage::matched_unbound, {}},
    {RequestStage::moving, {RequestStage::idle, RequestStage::draining}},
    {RequestStage::draining, {RequestStage::idle}},
    {RequestStage::listed, {RequestStage::idle}},
};

inline constexpr Transitions<RequestStage, request_stages> receive_transitions{
    {RequestStage::idle,
     {RequestStage::posted, RequestStage::matched_unbound, RequestStage::moving, RequestStage::listed}},
    {RequestStage::posted, {RequestStage::idle, RequestStage::matched_unbound, RequestStage::moving}},
    {RequestStage::begun, {}},
    {RequestStage::blocked, {}},
    {RequestStage::advertising, {}},
    {RequestStage::advertised, {}},
    {RequestStage::matched_unbound, {RequestStage::idle, RequestStage::posted}},
    {RequestStage::moving, {RequestStage::idle}},
    {RequestStage::draining, {}},
    {RequestStage::listed, {RequestStage::idle}},
};

}  // namespace canele::comm
