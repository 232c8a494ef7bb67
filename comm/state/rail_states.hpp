// SPDX-License-Identifier: BSD-3-Clause
//
// States of a rail: its connection, and what it transmits.
//
// The two are independent, because a system-call driver may hold a packet of a rail whose connection has ended.
// transition() in state/peer.hpp changes either of them, and asserts the tables below.
//
// Connection of the rail (changed by engine/connect.cpp, engine/failure.cpp; `closing` by link/sequencing.cpp):
//
//     connecting ──connected()──▶ up ──rail_close sent──▶ closing       from any of these three:
//                                                                         driver cannot go on ──▶ failed
//                                                                         peer disconnected   ──▶ disconnected
//
// What the rail transmits (changed by link/, by engine/ where a driver answers or a peer ends):
//
//     memory driver:       idle ◀─────ready()───── full         full: the driver owes a ready(), nothing is kept
//                          │  ▲
//         driver full      │  │ plan written, or dropped
//                          ▼  │
//                      blocked ──ready()──▶ unblocked           unblocked ──driver full──▶ blocked
//
//     system-call driver:  idle ──try to connect──▶ connecting ──server is back──▶ idle
//                          │  ▲
//         packet made      │  │ sent, or taken back, or dropped
//                          ▼  │
//                       staged ─┬─ pending ──▶ sending ──done()──▶ idle
//                          ▲    ├─ full ─────▶ refused
//                          │    └─ failed ───▶ failing ──failed()──▶ idle
//                          └────ready()────── refused
//
// In `connecting` and `staged` the thread that serves the driver reads the state without the lock. So no transition
// leaves them before that thread has reported back: see link::driver_returned().
#pragma once

#include <cstdint>

#include "comm/state/transitions.hpp"

namespace canele::comm {

enum class Connection : std::uint8_t {
  connecting,   ///< tries to connect, or has no driver yet.
  up,           ///< carries packets in both directions.
  closing,      ///< up, but this rank has sent its rail_close. Only packets that the peer still needs follow.
  failed,       ///< carries nothing more, in either direction. The peer may go on with its other rails.
  disconnected  ///< its peer has left or failed. The driver may still hold memory.
};
inline constexpr int connection_states = 5;

enum class Transmit : std::uint8_t {
  idle,        ///< can take a packet.
  connecting,  ///< system-call driver: waits until its server has begun to connect.
  full,        ///< memory driver: it was full, and ready() will follow.
  blocked,     ///< memory driver: it was full, and `packet` keeps the plan. ready() will follow.
  unblocked,   ///< memory driver: ready() has come. The next flush writes the plan.
  staged,      ///< system-call driver: has a packet that is on its way to its server, or not back yet.
  refused,     ///< system-call driver: has a packet for which the driver was full. ready() will follow.
  failing,     ///< system-call driver: has a packet that the driver answered with failed. failed() will follow.
  sending      ///< the driver has the packet; its memory is in use.
};
inline constexpr int transmit_states = 9;

inline constexpr Transitions<Connection, connection_states> connection_transitions{
    {Connection::connecting, {Connection::up, Connection::failed, Connection::disconnected}},
    {Connection::up, {Connection::closing, Connection::failed, Connection::disconnected}},
    {Connection::closing, {Connection::failed, Connection::disconnected}},
    {Connection::failed, {}},
    {Connection::disconnected, {}},
};

inline constexpr Transitions<Transmit, transmit_states> transmit_transitions{
    {Transmit::idle, {Transmit::connecting, Transmit::full, Transmit::blocked, Transmit::staged}},
    {Transmit::connecting, {Transmit::idle}},
    {Transmit::full, {Transmit::idle}},
    {Transmit::blocked, {Transmit::unblocked, Transmit::idle}},
    {Transmit::unblocked, {Transmit::blocked, Transmit::idle}},
    {Transmit::staged, {Transmit::idle, Transmit::sending, Transmit::refused, Transmit::failing}},
    {Transmit::refused, {Transmit::staged, Transmit::idle}},
    {Transmit::failing, {Transmit::idle}},
    {Transmit::sending, {Transmit::idle}},
};

}  // namespace canele::comm
