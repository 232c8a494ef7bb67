// SPDX-License-Identifier: BSD-3-Clause
//
// Names and help of the counters, for canele_counter_name() and the JSON. Constant data: any thread may read it. The
// order is that of enum Counter, then come the old names. Names are part of the public interface, so they may only be
// added.
#include "comm/observe/counters.hpp"

#include <array>
#include <cassert>

namespace canele::comm {
namespace {

constexpr std::array<CounterInfo, static_cast<int>(Counter::count)> table = {{
    {"messages_sent", "messages sent: the library no longer accesses their buffers"},
    {"bytes_sent", "bytes of user data in these messages"},
    {"messages_received", "messages received completely"},
    {"bytes_received", "bytes of user data delivered"},
    {"packets_sent", "packets given to drivers"},
    {"packets_received", "packets received from drivers"},
    {"eager_sent", "messages sent eagerly, without a rendezvous"},
    {"rendezvous_sent", "messages announced by a request to send (RTS)"},
    {"aggregated_chunks", "messages and requests to send that shared a packet with an earlier one"},
    {"posted_matches", "messages that matched a posted receive on arrival"},
    {"unexpected_messages", "messages that matched no receive on arrival and were stored"},
    {"unexpected_dropped", "stored messages dropped because their session was closed or the engine was finalized"},
    {"unexpected_now", "messages stored now"},
    {"unexpected_most", "maximum of unexpected_now"},
    {"unexpected_bytes_now", "bytes of messages stored now"},
    {"unexpected_bytes_most", "maximum of unexpected_bytes_now"},
    {"credit_stalls", "sends that had to wait for credit of their receiver"},
    {"credit_stalled_ns", "ns during which at least one send waited for credit, summed over peers"},
    {"credit_blocked_now", "sends that wait for credit now"},
    {"credit_blocked_most", "maximum of credit_blocked_now"},
    {"multicasts_sent", "multicasts of which this rank was the root"},
    {"multicasts_forwarded", "streams that this rank forwarded for multicasts of other roots"},
    {"bytes_forwarded", "bytes of user data in these streams; bytes_sent includes them"},
    {"truncated", "messages longer than their receive"},
    {"cancelled", "receives cancelled before a message matched"},
    {"rma_put_bytes", "bytes written directly to a peer's memory, to a receive that had sent an RTR"},
    {"rma_get_bytes", "bytes read directly from a peer's memory, e.g. by cross-memory attach"},
    {"accesses_sent", "one-sided operations that this rank has begun"},
    {"accesses_direct", "one-sided operations that this rank has made by itself, in memory that is not mapped"},
    {"accesses_executed", "one-sided operations of other ranks executed here, with those that were rejected"},
    {"accesses_rejected", "one-sided operations of other ranks that their key does not allow"},
    {"notifications_received", "notifications delivered to the program"},
    {"device_messages", "sends and receives of device memory"},
    {"device_bytes_staged", "bytes of these messages copied between a device and host memory"},
    {"device_bytes_direct", "bytes of these messages that a device has copied out of another rank's device memory"},
    {"device_gets_failed", "copies out of another rank's device memory that failed; their messages were staged"},
    {"published_bytes_now", "bytes of keys and values that this rank has published"},
    {"exchanged_bytes_now", "bytes of keys and values of all ranks kept here since the last exchange"},
    {"lock_taken", "submissions that took the engine's lock and ran at once"},
    {"lock_queued", "submissions left to the thread that held the lock"},
    {"callbacks", "completion callbacks that were run"},
    {"doorbells_sent", "doorbells rung for a sleeping peer"},
    {"worker_parks", "times that the worker went to sleep"},
    {"worker_wakes", "times that the worker was woken"},
    {"waiter_parks", "times that a waiting thread went to sleep"},
    {"core_losses", "times that a polling thread lost its core to others for over a millisecond"},
    {"peers_failed", "peers that died or violated the protocol"},
    {"rails_failed", "rails that failed while their peer stayed connected by others"},
    {"connections_rejected", "connections closed because of malformed packets"},
}};

/// Old names, which stay for programs that ask for them. Each reads the counter of the new name.
struct CounterAlias {
  CounterInfo info;
  Counter counter;
};
constexpr std::array<CounterAlias, 7> aliases = {{
    {{"copies_pushed", "deprecated; expected: rma_put_bytes"}, Counter::rma_put_bytes},
    {{"copies_pulled", "deprecated; expected: rma_get_bytes"}, Counter::rma_get_bytes},
    {{"withheld_now", "deprecated; expected: credit_blocked_now"}, Counter::credit_blocked_now},
    {{"withheld_most", "deprecated; expected: credit_blocked_most"}, Counter::credit_blocked_most},
    {{"wakes_sent", "deprecated; expected: doorbells_sent"}, Counter::doorbells_sent},
    {{"turns_lost", "deprecated; expected: core_losses"}, Counter::core_losses},
    {{"frames_refused", "deprecated; expected: connections_rejected"}, Counter::connections_rejected},
}};
static_assert(counter_names == static_cast<int>(Counter::count) + static_cast<int>(aliases.size()));

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

const CounterInfo& counter_name(int index) {
  assert(index >= 0 && index < counter_names);
  const auto row = static_cast<std::size_t>(index);
  return row < table.size() ? table[row] : aliases[row - table.size()].info;
}

Counter counter_of_name(int index) {
  assert(index >= 0 && index < counter_names);
  const auto row = static_cast<std::size_t>(index);
  return row < table.size() ? static_cast<Counter>(index) : aliases[row - table.size()].counter;
}

}  // namespace canele::comm
