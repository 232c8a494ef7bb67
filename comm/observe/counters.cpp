// SPDX-License-Identifier: BSD-3-Clause
//
// Names and help of the counters, for canele_counter_name() and the JSON. Constant data: any thread may read it. The
// order is that of enum Counter. Names are part of the public interface, so they may only be added.
#include "comm/observe/counters.hpp"

#include <array>
#include <cassert>

namespace canele::comm {
namespace {

constexpr std::array<CounterInfo, static_cast<int>(Counter::count)> table = {{
    {"messages_sent", "messages that the library has let go of on the sending side"},
    {"bytes_sent", "bytes of user data in them"},
    {"messages_received", "messages that have been received to the end"},
    {"bytes_received", "bytes of user data that were delivered"},
    {"packets_sent", "packets given to drivers"},
    {"packets_received", "packets that drivers presented"},
    {"eager_sent", "messages that left at once, without asking the receiver"},
    {"rendezvous_sent", "messages that were announced first"},
    {"aggregated_chunks", "messages and announcements that shared a packet with an earlier one"},
    {"posted_matches", "arrivals that found their receive waiting"},
    {"unexpected_messages", "arrivals that found no receive and were stored"},
    {"unexpected_dropped", "stored messages that were dropped: their session was closed, or the engine was finalized"},
    {"unexpected_now", "stored messages at this moment"},
    {"unexpected_most", "the most that was ever stored at once"},
    {"unexpected_bytes_now", "bytes of stored messages at this moment"},
    {"unexpected_bytes_most", "the most bytes that were ever stored at once"},
    {"credit_stalls", "sends that had to wait for credit of their receiver"},
    {"credit_stalled_ns", "ns in which some send waited for credit, summed over peers"},
    {"withheld_now", "sends that wait for credit at this moment"},
    {"withheld_most", "the most that ever waited for credit at once"},
    {"multicasts_sent", "multicasts that this rank was the root of"},
    {"multicasts_forwarded", "streams by which this rank handed the data of others' multicasts on"},
    {"bytes_forwarded", "bytes of user data in those streams; they are among bytes_sent, too"},
    {"truncated", "messages that were longer than their receive"},
    {"cancelled", "receives that were cancelled before a message matched"},
    {"copies_pushed", "bytes written straight to a peer's memory, in a receive that it had offered"},
    {"copies_pulled", "bytes read straight from a peer's memory (cross-memory attach)"},
    {"lock_taken", "submissions that ran at once"},
    {"lock_queued", "submissions left to the thread that held the engine"},
    {"callbacks", "completion callbacks that were run"},
    {"wakes_sent", "doorbells rung for a sleeping peer"},
    {"worker_parks", "times the worker went to sleep"},
    {"worker_wakes", "times the worker was woken"},
    {"waiter_parks", "times a waiting thread went to sleep"},
    {"turns_lost", "times a thread that polls found that others had had its core for over a millisecond"},
    {"peers_failed", "peers that died or broke the protocol"},
    {"rails_failed", "rails that died while their peer lived on by others"},
    {"frames_refused", "connections closed because of bytes that make no sense"},
}};

constexpr bool every_counter_named() {
  for (const CounterInfo& one : table) {
    if (one.name.empty() || one.help.empty()) return false;
  }
  return true;
}
static_assert(every_counter_named(), "every counter needs a name and a help text");

}  // namespace

const CounterInfo& counter_info(Counter counter) {
  assert(counter >= Counter{} && counter < Counter::count);
  return table[static_cast<std::size_t>(counter)];
}

}  // namespace canele::comm
