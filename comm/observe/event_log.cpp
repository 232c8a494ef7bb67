// SPDX-License-Identifier: BSD-3-Clause
//
// Event log: names, and the dump in the trace event format of Chrome and Perfetto. No code here is on the path of a
// message.
//
// The format requires microseconds; they are written with three decimals so that no nanosecond is lost.
#include "comm/observe/event_log.hpp"

#include <array>
#include <cstdio>

#include "comm/observe/json.hpp"
#include "comm/observe/text.hpp"

namespace canele::comm {
namespace {

constexpr std::array<std::string_view, static_cast<int>(Event::count)> names = {
    "send_posted",       "send_done",      "receive_posted",    "receive_matched", "receive_done",
    "receive_cancelled", "receive_failed", "unexpected_stored", "rts_sent",        "rts_received",
    "cts_sent",          "cts_received",   "bulk_sent",         "bulk_received",   "packet_sent",
    "packet_received",   "peer_connected", "peer_failed",       "worker_parked",   "worker_woken"};

constexpr bool every_event_named() {
  for (const std::string_view name : names) {
    if (name.empty()) return false;
  }
  return true;
}
static_assert(every_event_named());

std::string microseconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu.%03u", static_cast<unsigned long long>(ns / 1000),
                static_cast<unsigned>(ns % 1000));
  return text;
}

void write_event(JsonWriter& json, const EventRecord& record, int rank) {
  json.begin_object();
  json.field("name", event_name(record.kind)).field("ph", "i").field("s", "t");
  json.key("ts").raw(microseconds(record.time_ns));
  json.field("pid", rank).field("tid", 0);
  json.key("args").begin_object();
  if (record.peer != EventLog::no_peer) json.field("peer", record.peer);
  if (record.session != EventLog::no_session) json.field("session", record.session);
  // The tag is written as text: JavaScript readers keep only 53 bits of a number, and a tag has 64.
  json.field("tag", hexadecimal(record.tag)).field("size", record.size);
  json.end_object().end_object();
}

}  // namespace

std::string_view event_name(Event event) {
  assert(event < Event::count);
  return names[static_cast<std::size_t>(event)];
}

std::string EventLog::to_json(int rank) const {
  const OfRank own{rank, this};
  return to_json({&own, 1});
}

std::string EventLog::to_json(std::span<const OfRank> logs) {
  JsonWriter json;
  std::uint64_t lost = 0;
  for (const OfRank& one : logs) lost += one.log->lost();
  json.begin_object().field("displayTimeUnit", "ns");
  json.key("otherData").begin_object().field("lost", lost).end_object();
  json.key("traceEvents").begin_array();
  for (const auto& [rank, log] : logs) {
    json.begin_object().field("name", "process_name").field("ph", "M").field("pid", rank).field("tid", 0);
    json.key("args").begin_object().field("name", "rank " + std::to_string(rank)).end_object().end_object();
    for (std::size_t i = 0; i < log->kept(); ++i) write_event(json, log->at(i), rank);
  }
  json.end_array().end_object();
  return std::move(json).finish();
}

}  // namespace canele::comm
