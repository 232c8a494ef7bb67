// SPDX-License-Identifier: BSD-3-Clause
//
// Message: one that has arrived and has not been received. It is unexpected, or matched by an unbound receive
// (canele_irecv_late). Control: a small chunk to be sent that belongs to no request.
//
// Used by protocol/. Called by the thread that holds the engine's lock.
//
// A message is one block of exactly the needed size. It begins with a cache line that the matcher and the protocol
// share. Then follow the fields that only some messages need, and the message's bytes.
//
//   │ Message: key, links, traits, stored │ Origin (rendezvous, synchronous) │ stored bytes │ rkey │
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/matching/arrival_index.hpp"
#include "comm/matching/node.hpp"
#include "comm/wire/wire.hpp"
#include "strategies/strategy.hpp"

namespace canele::comm {

struct Message : UnexpectedNode {
  /// Extra fields of a message whose sender waits for an answer.
  struct Origin {
    std::uint64_t length = 0;        ///< of the message as sent.
    Handle handle = Handle::none;    ///< of the send.
    std::uint16_t rkey = 0;          ///< bytes of the memory key, which follows the stored bytes.
    std::uint8_t rkey_driver = 0;    ///< see DriverInstance::driver_tag().
    bool may_stream = false;         ///< see wire::Rts.
    std::uint32_t multicast_id = 0;  ///< the root's number of a multicast; 0: no multicast.
  };

  bool rendezvous() const { return has(is_rendezvous); }
  bool synchronous() const { return has(is_synchronous); }
  bool needs_fin() const { return has(needs_fin_trait); }  ///< rendezvous: see wire::Rts
  bool charged() const { return has(is_charged); }         ///< counted in its sender's receive window
  bool has_origin() const { return origin_size(traits) != 0; }

  /// Returns the length of the message as sent. `stored` bytes of it are here: all of it (eager), or its header
  /// (rendezvous).
  std::uint64_t length() const { return has_origin() ? origin().length : stored; }
  Handle handle() const { return has_origin() ? origin().handle : Handle::none; }
  Origin& origin() { return *reinterpret_cast<Origin*>(this + 1); }
  const Origin& origin() const { return *reinterpret_cast<const Origin*>(this + 1); }
  const std::byte* bytes_alone() const { return reinterpret_cast<const std::byte*>(this + 1); }  ///< without an origin
  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1) + origin_size(traits); }
  std::span<const std::byte> rkey() { return {bytes() + stored, std::size_t{origin().rkey}}; }
  std::size_t size() const {
    return sizeof(Message) + origin_size(traits) + stored + (has_origin() ? origin().rkey : 0u);
  }
  /// Returns the credit that the message was charged.
  std::uint64_t credit_cost() const {
    return rendezvous() ? wire::credit_cost_of_rts(stored) : wire::credit_cost_of_eager(stored);
  }

  static constexpr std::uint8_t is_rendezvous = 1, is_synchronous = 2, needs_fin_trait = 4, is_charged = 8;
  static constexpr std::size_t origin_size(std::uint8_t traits) {
    return (traits & (is_rendezvous | is_synchronous)) != 0 ? sizeof(Origin) : 0;
  }

 private:
  bool has(std::uint8_t trait) const { return (traits & trait) != 0; }
};
static_assert(sizeof(Message) == 64);
static_assert(sizeof(Message) + sizeof(Message::Origin) + sizeof(IndexEntry) + 2 * sizeof(void*) <= wire::envelope_cost,
              "what it takes, malloc's own included");

/// A control chunk that waits for its packet.
struct Control : strategies::Item {
  wire::Head head{};
  std::uint8_t payload_size = 0;
  std::byte payload[wire::max_label + 1];
  Control* next_free = nullptr;
};

/// Owns all control chunks ever made, in a backlog or free. They are deleted with the engine.
class ControlPool {
 public:
  Control& make() {
    Control* control = free_;
    if (control == nullptr) {
      all_.push_back(std::make_unique<Control>());
      control = all_.back().get();
    } else {
      free_ = control->next_free;
    }
    static_cast<strategies::Item&>(*control) = strategies::Item{};
    control->kind = strategies::Kind::control;
    return *control;
  }
  void release(Control& control) {
    control.next_free = free_;
    free_ = &control;
  }

 private:
  std::vector<std::unique_ptr<Control>> all_;
  Control* free_ = nullptr;
};

}  // namespace canele::comm
