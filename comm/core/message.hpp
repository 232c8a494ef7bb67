// SPDX-License-Identifier: BSD-3-Clause
//
// Message: one that arrived and has not been received: an unexpected one, or one that a late receive holds. And
// Control: a small chunk to be sent that belongs to no request.
//
// Who: protocol/, under the engine's lock.
// Threads: under the engine's lock.
// Surprise: a message is one block, its bytes behind it, byte-exact; see message_pool.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/matching/node.hpp"
#include "comm/packet/wire.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

struct Peer;

struct Message : UnexpectedNode {
  Peer* peer = nullptr;
  std::uint64_t length = 0;     ///< of the message as sent
  std::uint64_t handle = 0;     ///< of the send: rendezvous, or synchronous
  std::uint32_t stored = 0;     ///< bytes of the message kept here (eager: all; rendezvous: the header)
  std::uint16_t exposure = 0;   ///< bytes of the exposure, behind them
  std::uint8_t exposed_by = 0;  ///< see DriverSlot::mark()
  bool rendezvous = false;
  bool synchronous = false;
  bool confirm = false;  ///< rendezvous: see wire::Rts
  bool charged = false;  ///< to its sender's allowance

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
  std::span<const std::byte> exposed() { return {bytes() + stored, exposure}; }
  std::size_t size() const { return sizeof(Message) + stored + exposure; }
  /// What it was charged for.
  std::uint64_t price() const { return rendezvous ? wire::charge_of_rts(stored) : wire::charge_of_eager(stored); }
};
static_assert(sizeof(Message) + 2 * sizeof(void*) <= wire::envelope_charge, "what it takes, malloc's own included");

/// A control chunk that waits for its packet.
struct Control : strategies::Item {
  wire::Head head{};
  std::uint8_t payload_size = 0;
  std::byte payload[wire::max_label + 1];
  Control* next_free = nullptr;
};

class ControlPool {
 public:
  ~ControlPool() {
    while (free_ != nullptr) delete take();
  }
  Control& make() {
    Control* control = free_ != nullptr ? take() : new Control;
    static_cast<strategies::Item&>(*control) = strategies::Item{};
    control->kind = strategies::Kind::control;
    return *control;
  }
  void release(Control& control) {
    control.next_free = free_;
    free_ = &control;
  }

 private:
  Control* take() {
    Control* control = free_;
    free_ = control->next_free;
    return control;
  }
  Control* free_ = nullptr;
};

}  // namespace canele::comm
