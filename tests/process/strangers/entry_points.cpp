// SPDX-License-Identifier: BSD-3-Clause
//
// Every function of the C API, called where it is not allowed (in the child of a fork), and with arguments that are not
// allowed.
//
// Run by entry_points_test.py, which compares --list with the symbols of the library: a new function needs an answer
// here. The main thread, and the library's own. A function is listed once, with usual arguments. Wrong ones are made of
// them by their types: NULL for each pointer that is not marked as optional, extremes for each number that is marked as
// any.
//
//    --list            the functions
//    --misuse          each function in a process of its own, one wrong argument at a time: no signal, CANELE_EINVAL
//                      for what can never be right
//    --fork            2 ranks: the child of rank 0 calls each function, then the ranks exchange messages
#include <canele/active_message.h>
#include <canele/collectives.h>
#include <canele/device.h>
#include <canele/job.h>
#include <canele/log.h>
#include <canele/one_sided.h>
#include <canele/post.h>
#include <canele/settings.h>
#include <canele/wakeup.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "entry_point.hpp"

namespace {

using namespace entry_points;

std::vector<Entry> entries;

template <class R, class... P, class... A>
void add(const char* name, InChild in_child, R (*function)(P...), A... usual) {
  static_assert(sizeof...(P) == sizeof...(A));
  const std::tuple<A...> given(usual...);
  entries.push_back(
      {name, in_child,
       [=] {
         return std::apply(
             [&](const auto&... one) { return apply<R>(function, std::tuple<P...>(static_cast<P>(value(one))...)); },
             given);
       },
       [=] { return misuse(name, function, given, std::index_sequence_for<P...>{}); }});
}
#define ADD(in_child, name, ...) add(#name, InChild::in_child, name __VA_OPT__(, ) __VA_ARGS__)

// ---- the world of the calls -----------------------------------------------------------------------------------------

struct World {
  canele_engine_t* engine = nullptr;
  canele_session_t* session = nullptr;
  canele_group_t* group = nullptr;
  int peer = 0;
  canele_request_t pending{}, held{}, ended{};  ///< receives: without message; unbound, with its message; done
  canele_task_t task{};
  canele_operator_t sum{};
  canele_memory_t* memory = nullptr;
  canele_key_t* key = nullptr;  ///< of `memory`
  canele_lane_t* lane = nullptr;
  std::uint32_t slot = 0;
  canele_queue_t queue{};
  canele_wakeup_t* wakeup = nullptr;  ///< of `queue`
  void* payload = nullptr;            ///< of an active message, taken out of the queue
  alignas(8) char bytes[64] = {};
};
World world;

void ignore(canele_request_t*, unsigned, void*) {}
void ignore_message(const canele_am_message_t*, void*) {}
void ignore_hang(canele_engine_t*, const char*, void*) {}
void ignore_peer(canele_engine_t*, int, int, const char*, void*) {}
int run_once(canele_task_t*, int, void*) { return CANELE_TASK_DONE; }
int pieces(const void*, std::size_t offset, iovec* out, int) {
  out[0] = {world.bytes + offset, sizeof world.bytes - offset};
  return 1;
}

void add_engine_and_sessions() {
  static canele_engine_t* engine = nullptr;
  static canele_session_t* session = nullptr;
  static canele_options_t options = {sizeof options, nullptr, 0};
  static int index = 0;
  canele_engine_t* const e = world.engine;
  ADD(harmless, canele_error_string, Any<int>{0});
  ADD(harmless, canele_error_detail);
  ADD(harmless, canele_version);
  ADD(harmless, canele_abi_check, Any<int>{CANELE_ABI_VERSION});
  ADD(refused, canele_init, Optional<const canele_options_t*>{&options}, &engine);
  ADD(refused, canele_finalize, Optional<canele_engine_t*>{e});
  ADD(ends, canele_abort, Optional<canele_engine_t*>{e}, 5, Optional<const char*>{"a test"});
  ADD(refused, canele_rank, e);
  ADD(refused, canele_size, e);
  ADD(refused, canele_local_rank, e);
  ADD(refused, canele_local_size, e);
  ADD(refused, canele_peer_state, e, Any<int>{world.peer});
  ADD(refused, canele_on_peer, e, Optional<canele_peer_fn>{ignore_peer}, Optional<void*>{nullptr});
  ADD(harmless, canele_now, Optional<canele_engine_t*>{e});
  ADD(refused, canele_progress, e);
  ADD(refused, canele_worker_use, e, Any<unsigned>{CANELE_WORKER_NONE});
  ADD(refused, canele_worker_bind, e, CANELE_INDEX_LOGICAL, &index, 1);
  ADD(refused, canele_worker_stop, e);
  ADD(refused, canele_worker_active, e);
  ADD(refused, canele_session_open, e, "another", Any<unsigned>{0}, &session);
  ADD(refused, canele_session_close, world.session);
  ADD(harmless, canele_session_engine, world.session);
  ADD(refused, canele_barrier, world.session);
}

void add_values() {
  static std::size_t size = 0, count = 0;
  static int ranks[2], host = 0;
  static char name[CANELE_HOST_NAME_SIZE];
  canele_engine_t* const e = world.engine;
  size = sizeof world.bytes;
  ADD(refused, canele_publish, e, "key", static_cast<const void*>(world.bytes), Length{8});
  ADD(refused, canele_exchange, e, Any<std::uint64_t>{0});
  ADD(refused, canele_lookup, e, Any<int>{world.peer}, "key", static_cast<void*>(world.bytes), &size);
  ADD(refused, canele_local_ranks, e, ranks, std::size_t{2}, &count);
  ADD(refused, canele_rank_host, e, Any<int>{world.peer}, Optional<int*>{&host}, name, std::size_t{sizeof name});
}

void add_data_and_packs() {
  static iovec piece = {world.bytes, sizeof world.bytes};
  static canele_iov_t vector = {&piece, 1};
  const Fresh<canele_request_t> request;
  canele_session_t* const s = world.session;
  ADD(harmless, canele_data_contiguous, Optional<void*>{world.bytes}, Any<std::size_t>{8});
  ADD(harmless, canele_data_iov, Optional<canele_iov_t*>{&vector});
  ADD(harmless, canele_data_segments, Optional<canele_segments_fn>{pieces}, Optional<void*>{nullptr},
      Any<std::size_t>{8});
  ADD(harmless, canele_pack_begin, Fresh<canele_pack_t>{});
  ADD(harmless, canele_pack_add, Fresh<canele_pack_t>{}, world.bytes, Length{8});
  ADD(refused, canele_pack_isend, s, Any<int>{world.peer}, Any<std::uint64_t>{3}, Fresh<canele_pack_t>{},
      Optional<canele_send_options_t*>{nullptr}, request);
  ADD(refused, canele_pack_irecv, s, Any<int>{world.peer}, Any<std::uint64_t>{3}, Any<std::uint64_t>{0},
      Fresh<canele_pack_t>{}, request);
  ADD(harmless, canele_pack_end, Fresh<canele_pack_t>{});
}

void add_messages() {
  static canele_data_t data = canele_data_contiguous(world.bytes, 8);
  static canele_send_options_t options = {sizeof options, 0, 0, 0};
  static canele_multicast_options_t multicast = {sizeof multicast, nullptr, 0, 0, 0, nullptr};
  static canele_am_handler_t handler = {sizeof handler, ignore_message, nullptr, nullptr};
  static canele_status_t status;
  static int found = 0, destination = 0;
  destination = world.peer;
  const Fresh<canele_request_t> request;
  canele_session_t* const s = world.session;
  const Any<std::uint64_t> tag{3}, mask{CANELE_TAG_EXACT};
  const Any<int> peer{world.peer};
  ADD(refused, canele_isend, s, peer, tag, world.bytes, Length{8}, request);
  ADD(refused, canele_isend_data, s, peer, tag, &data, Optional<canele_send_options_t*>{&options}, request);
  ADD(refused, canele_send_set_priority, &world.ended, Any<int>{1});
  ADD(refused, canele_imulticast, s, &destination, std::size_t{1}, tag, &data,
      Optional<canele_multicast_options_t*>{&multicast}, request);
  ADD(refused, canele_irecv, s, peer, tag, mask, world.bytes, Length{8}, request);
  ADD(refused, canele_irecv_data, s, peer, tag, mask, &data, request);
  ADD(refused, canele_irecv_late, s, peer, tag, mask, request);
  ADD(refused, canele_receive_peek, &world.held, world.bytes, Length{1});
  ADD(refused, canele_receive_envelope, &world.held, &status);
  ADD(refused, canele_receive_bind, &world.held, &data);
  ADD(refused, canele_cancel, &world.pending);
  ADD(refused, canele_iprobe, s, peer, tag, mask, &found, Optional<canele_status_t*>{&status});
  ADD(refused, canele_improbe, s, peer, tag, mask, &found, request, Optional<canele_status_t*>{&status});
  ADD(refused, canele_am_register, s, Any<std::uint64_t>{9}, &handler);
  ADD(refused, canele_am_register_with, s, Any<std::uint64_t>{10}, &handler, Optional<canele_am_options_t*>{nullptr});
  ADD(refused, canele_am_send, s, peer, Any<std::uint64_t>{9}, world.bytes, Length{8}, Optional<canele_data_t*>{&data},
      Optional<canele_send_options_t*>{nullptr}, Fresh<canele_am_t>{});
  ADD(refused, canele_am_unregister, s, Any<std::uint64_t>{9});
}

void add_active_messages() {
  static canele_data_t data = canele_data_contiguous(world.bytes, 8);
  static canele_post_options_t options = {sizeof options, {}, 0, 0, 0};
  static const canele_am_message_t message = {};
  static canele_am_token_t token = {};
  static void* payload = nullptr;
  static std::size_t length = 0;
  canele_session_t* const s = world.session;
  const Any<std::uint64_t> id{10};
  ADD(refused, canele_am_open, s, id, Fresh<canele_queue_t>{}, Optional<void*>{nullptr});
  ADD(refused, canele_am_post, s, world.peer, id, world.bytes, Length{8}, Optional<canele_data_t*>{&data},
      Optional<canele_post_options_t*>{&options}, Fresh<canele_am_t>{});
  ADD(refused, canele_am_inject, s, world.peer, id, world.bytes, Length{8}, world.bytes, Length{8});
  ADD(refused, canele_am_keep, &message, &payload);
  ADD(harmless, canele_am_header, world.payload, Optional<std::size_t*>{&length});
  ADD(refused, canele_am_call, s, world.peer, id, world.bytes, Length{8}, Optional<canele_data_t*>{&data},
      Optional<canele_data_t*>{&data}, Optional<canele_post_options_t*>{&options}, Fresh<canele_call_t>{});
  ADD(refused, canele_am_take_token, &message, &token);
  ADD(harmless, canele_am_message_of, world.payload);
  ADD(refused, canele_am_reply, s, &token, Optional<canele_data_t*>{&data}, Optional<canele_post_options_t*>{&options},
      Fresh<canele_request_t>{});
  ADD(refused, canele_am_inject_reply, s, &token, world.bytes, Length{8});
  ADD(refused, canele_am_release, world.payload);
}

void add_posts() {
  static canele_data_t data = canele_data_contiguous(world.bytes, 8);
  static canele_post_options_t options = {sizeof options, {}, 0, 0, 0};
  static canele_entry_t entries_taken[2];
  static canele_completion_t then = {CANELE_COMPLETE_CALLBACK, 0, nullptr, ignore, nullptr};
  static std::size_t limit = 0;
  canele_session_t* const s = world.session;
  const Fresh<canele_request_t> request;
  const Fresh<canele_completion_counter_t> counter;
  const Any<std::uint64_t> tag{8};
  ADD(refused, canele_post_send, s, world.peer, tag, &data, Optional<canele_post_options_t*>{&options}, request);
  ADD(refused, canele_post_receive, s, world.peer, tag, CANELE_TAG_EXACT, Optional<canele_data_t*>{&data},
      Optional<canele_post_options_t*>{&options}, request);
  const Fresh<canele_persistent_t> repeated;
  ADD(refused, canele_send_init, s, Any<int>{world.peer}, tag, &data, Optional<canele_post_options_t*>{&options},
      repeated);
  ADD(refused, canele_receive_init, s, Any<int>{world.peer}, tag, Any<std::uint64_t>{CANELE_TAG_EXACT}, &data,
      Optional<canele_post_options_t*>{&options}, repeated);
  ADD(refused, canele_start, repeated);
  ADD(refused, canele_request_begin, world.engine, request);
  ADD(refused, canele_request_complete, request, CANELE_OK);
  ADD(refused, canele_inject, s, world.peer, tag, world.bytes, Length{8});
  ADD(refused, canele_send_room, s, world.peer, Length{8});
  ADD(refused, canele_limit, world.engine, world.peer, CANELE_LIMIT_EAGER, &limit);
  ADD(refused, canele_session_on_error, s, Optional<canele_error_fn>{nullptr}, Optional<void*>{nullptr});
  ADD(refused, canele_queue_take, world.engine, Fresh<canele_queue_t>{}, entries_taken, 2);
  ADD(refused, canele_queue_wait, world.engine, Fresh<canele_queue_t>{}, entries_taken, 2, std::uint64_t{0});
  ADD(harmless, canele_completion_counter_init, counter, Any<std::uint64_t>{3}, Optional<canele_completion_t*>{&then});
  ADD(harmless, canele_completion_counter_value, counter);
  ADD(harmless, canele_completion_counter_errors, counter, Optional<int*>{nullptr});
  ADD(harmless, canele_completion_counter_add, counter, Any<std::uint64_t>{1});
  ADD(refused, canele_completion_counter_wait, world.engine, counter, std::uint64_t{1}, std::uint64_t{0});
}

/// Without a device.
void add_devices() {
  static canele_data_t to = canele_data_contiguous(world.bytes, 8), from = to;
  static canele_device_piece_t piece = {world.bytes, 8, 1, 0, CANELE_MEMORY_AUTO, 0};
  static canele_device_data_t all = {sizeof all, &piece, 1, nullptr, nullptr};
  static int kind = 0, device = 0;
  ADD(harmless, canele_data_device, Optional<canele_device_data_t*>{&all});
  ADD(refused, canele_device_support, world.engine, Any<int>{CANELE_MEMORY_HOST});
  ADD(refused, canele_device_kind_of, world.engine, Optional<void*>{world.bytes}, Optional<int*>{&kind},
      Optional<int*>{&device});
  ADD(refused, canele_device_copy, world.engine, &to, &from);
}

void add_log() { ADD(harmless, canele_on_log, Optional<canele_log_fn>{nullptr}, Optional<void*>{nullptr}); }

void add_wakeups() {
  static canele_wakeup_t* wakeup = nullptr;
  ADD(refused, canele_wakeup_open, world.engine, Fresh<canele_queue_t>{}, &wakeup);
  ADD(harmless, canele_wakeup_descriptor, world.wakeup);
  ADD(refused, canele_wakeup_arm, world.wakeup);
  ADD(refused, canele_wakeup_disarm, world.wakeup);
  ADD(refused, canele_wakeup_close, world.wakeup);
}

void add_one_sided() {
  static canele_data_t data = canele_data_contiguous(world.bytes, 8);
  static canele_access_options_t options = {sizeof options, {}, nullptr, 0, 0, 0, 0, 0}, notify = options;
  static canele_completion_t then = {CANELE_COMPLETE_CALLBACK, 0, nullptr, ignore, nullptr};
  static canele_memory_t* memory = nullptr;
  static void* base = nullptr;
  static canele_key_t* key = nullptr;
  static canele_lane_t* lane = nullptr;
  static char bytes[CANELE_KEY_SIZE];
  static std::uint64_t before = 0;
  static std::uint32_t slot = 0;
  notify.slot = world.slot;
  canele_memory_key(world.memory, bytes);
  canele_engine_t* const e = world.engine;
  const OptionalFresh<canele_request_t> request;
  const Optional<canele_access_options_t*> usual{&options};
  const Any<std::uint64_t> offset{8}, number{1};
  ADD(refused, canele_memory_register, e, world.bytes, Length{64}, Optional<canele_memory_options_t*>{nullptr},
      &memory);
  ADD(refused, canele_memory_allocate, e, Length{64}, Optional<canele_memory_options_t*>{nullptr}, &base, &memory);
  ADD(refused, canele_memory_key, world.memory, bytes);
  ADD(refused, canele_key_map, world.key, &base);
  ADD(refused, canele_key_open, e, bytes, &key);
  ADD(refused, canele_key_rank, world.key);
  ADD(harmless, canele_key_length, world.key);
  ADD(refused, canele_lane_open, e, &lane);
  ADD(refused, canele_notification_open, e, &then, &slot);
  ADD(refused, canele_put, world.key, offset, &data, usual, request);
  ADD(refused, canele_put_init, world.key, offset, &data, usual, Fresh<canele_persistent_t>{});
  ADD(refused, canele_get, world.key, offset, &data, usual, request);
  ADD(refused, canele_atomic, world.key, offset, CANELE_ATOMIC_ADD, Any<std::size_t>{8}, number, number,
      Optional<std::uint64_t*>{&before}, usual, request);
  ADD(refused, canele_accumulate, world.key, offset, &data, Any<int>{CANELE_SUM}, CANELE_UINT8,
      Optional<std::uint64_t*>{&before}, usual, request);
  ADD(refused, canele_notify, e, Any<int>{world.peer}, &notify, request);
  ADD(refused, canele_flush, e, Any<int>{world.peer}, usual, request);
  ADD(refused, canele_notification_close, e, Any<std::uint32_t>{world.slot});
  ADD(refused, canele_lane_close, world.lane);
  ADD(refused, canele_lane_try_flush, world.lane);
  ADD(refused, canele_key_close, world.key);
  ADD(refused, canele_memory_free, world.memory);
}

void add_completion() {
  static canele_request_t* const list[] = {&world.pending};
  static canele_request_t* got[4];
  static std::size_t index = 0, number = 0;
  static canele_status_t status;
  static int done = 0;
  static canele_condition_t set{}, unset{};
  canele_condition_signal(&set, 1);
  ADD(refused, canele_test, &world.pending, &done, Optional<canele_status_t*>{&status});
  ADD(refused, canele_wait, &world.pending, Kept<canele_status_t*>{&status});
  ADD(refused, canele_wait_all, std::size_t{1}, list, Kept<canele_status_t*>{&status});
  ADD(refused, canele_wait_any, std::size_t{1}, list, &index, Kept<canele_status_t*>{&status});
  ADD(harmless, canele_find_done, std::size_t{1}, Kept<canele_request_t* const*>{list}, Any<std::size_t>{0});
  ADD(refused, canele_request_status, &world.pending, &status);
  ADD(refused, canele_request_on_event, &world.pending, Any<unsigned>{CANELE_EVENT_FINALIZED}, ignore,
      Optional<void*>{nullptr});
  ADD(refused, canele_request_on_queue, &world.pending, Fresh<canele_queue_t>{}, Optional<void*>{nullptr});
  ADD(refused, canele_queue_poll, world.engine, Fresh<canele_queue_t>{}, got, Optional<void**>{nullptr}, 4);
  ADD(refused, canele_wait_until, &world.pending, std::uint64_t{0}, Kept<canele_status_t*>{&status});
  ADD(refused, canele_wait_some, std::size_t{1}, list, &index, Kept<canele_status_t*>{&status}, &number,
      std::uint64_t{0});
  ADD(refused, canele_test_any, std::size_t{1}, list, &index, Kept<canele_status_t*>{&status});
  ADD(harmless, canele_condition_signal, Fresh<canele_condition_t>{}, Any<std::uint16_t>{1});
  ADD(harmless, canele_condition_test, &set, Any<std::uint16_t>{1});
  ADD(refused, canele_condition_wait, Optional<canele_engine_t*>{world.engine}, world.peer == 0 ? &set : &unset,
      std::uint16_t{1});
  ADD(refused, canele_task_submit, world.engine, Fresh<canele_task_t>{}, run_once, Optional<void*>{nullptr},
      CANELE_PLACE_ANY, Any<int>{0});
  ADD(refused, canele_task_cancel, &world.task);
  ADD(harmless, canele_task_mask, Fresh<canele_task_t>{});
  ADD(harmless, canele_task_unmask, Fresh<canele_task_t>{});
  ADD(refused, canele_task_in_use, &world.task);
}

void add_observation() {
  static std::uint64_t number = 0;
  static std::size_t needed = 0;
  static char text[1 << 16];
  canele_engine_t* const e = world.engine;
  const Optional<std::size_t*> need{&needed};
  ADD(harmless, canele_counter_count);
  ADD(harmless, canele_counter_name, Any<int>{0});
  ADD(harmless, canele_counter_help, Any<int>{0});
  ADD(refused, canele_counter_read, e, Any<int>{0}, Any<int>{-1}, Optional<const char*>{nullptr}, &number);
  ADD(harmless, canele_setting_count);
  ADD(harmless, canele_setting_name, Any<int>{0});
  ADD(harmless, canele_setting_help, Any<int>{0});
  ADD(refused, canele_setting_read, Optional<canele_engine_t*>{e}, Any<int>{0}, text, std::size_t{sizeof text}, need);
  ADD(refused, canele_counters_json, e, text, std::size_t{sizeof text}, need);
  ADD(refused, canele_info_json, Optional<canele_engine_t*>{e}, text, std::size_t{sizeof text}, need);
  ADD(refused, canele_report, e, text, std::size_t{sizeof text}, need);
  ADD(refused, canele_on_hang, e, Optional<canele_hang_fn>{ignore_hang}, Optional<void*>{nullptr});
}

void add_collectives() {
  static canele_group_t* group = nullptr;
  static canele_operator_t made{};
  static const std::size_t counts[] = {1, 1};
  static const canele_parts_t parts = {sizeof(int), nullptr, nullptr};
  static int in[2] = {1, 2}, out[2] = {};
  const Fresh<canele_request_t> request;
  const Optional<canele_collective_options_t*> options{nullptr};
  canele_group_t* const g = world.group;
  const int root = 0;
  ADD(refused, canele_group_create, world.engine, "more", Optional<int*>{nullptr}, Any<std::size_t>{0}, &group);
  ADD(refused, canele_group_rank, g);
  ADD(refused, canele_group_size, g);
  ADD(harmless, canele_operator_of, CANELE_SUM, CANELE_INT32, &made);
  ADD(refused, canele_ibarrier, g, options, request);
  ADD(refused, canele_ibcast, g, static_cast<void*>(in), Length{sizeof(int)}, Any<int>{root}, options, request);
  ADD(refused, canele_ireduce, g, in, out, Length{1}, &world.sum, Any<int>{root}, options, request);
  ADD(refused, canele_iallreduce, g, in, out, Length{1}, &world.sum, options, request);
  ADD(refused, canele_igather, g, in, Length{sizeof(int)}, Optional<int*>{out}, Optional<const canele_parts_t*>{&parts},
      Any<int>{root}, options, request);
  ADD(refused, canele_iscatter, g, Optional<int*>{in}, Optional<const canele_parts_t*>{&parts}, Optional<int*>{out},
      Any<std::size_t>{sizeof(int)}, Any<int>{root}, options, request);
  ADD(refused, canele_iallgather, g, in, out, &parts, options, request);
  ADD(refused, canele_ialltoall, g, in, &parts, out, &parts, options, request);
  static const canele_edge_t edges[] = {{0, 0, sizeof(int)}};
  ADD(refused, canele_ineighbor_exchange, g, in, edges, Length{1}, out, edges, Length{1}, options, request);
  ADD(refused, canele_ireduce_scatter, g, in, out, Any<std::size_t>{1}, Optional<const std::size_t*>{counts},
      &world.sum, options, request);
  ADD(refused, canele_iscan, g, in, out, Length{1}, &world.sum, options, request);
  ADD(refused, canele_iexscan, g, in, Optional<int*>{out}, Length{1}, &world.sum, options, request);
  ADD(refused, canele_group_skip, g, Any<int>{CANELE_ENOMEM});
  ADD(refused, canele_group_revoke, g);
  ADD(refused, canele_group_destroy, Optional<canele_group_t*>{g});
}

void add_all() {
  add_engine_and_sessions();
  add_values();
  add_data_and_packs();
  add_messages();
  add_active_messages();
  add_posts();
  add_one_sided();
  add_completion();
  add_wakeups();
  add_devices();
  add_log();
  add_observation();
  add_collectives();
}

void must(int code, const char* what) {
  if (code == CANELE_OK) return;
  std::fprintf(stderr, "%s: %s: %s\n", what, canele_error_string(code), canele_error_detail());
  std::_Exit(9);
}

/// Makes an engine, and the objects that the calls are given: an unbound receive that holds a message from this rank,
/// and a receive that gets no message.
void begin_world() {
  must(canele_init(nullptr, &world.engine), "canele_init");
  must(canele_session_open(world.engine, "entry points", CANELE_ORDER_PER_TAG, &world.session), "session_open");
  must(canele_group_create(world.engine, "entry points", nullptr, 0, &world.group), "group_create");
  must(canele_operator_of(CANELE_SUM, CANELE_INT32, &world.sum), "operator_of");
  canele_completion_t then = {CANELE_COMPLETE_CALLBACK, 0, nullptr, ignore, nullptr};
  char key[CANELE_KEY_SIZE];
  must(canele_memory_register(world.engine, world.bytes, sizeof world.bytes, nullptr, &world.memory), "register");
  must(canele_memory_key(world.memory, key), "key");
  must(canele_key_open(world.engine, key, &world.key), "key_open");
  must(canele_lane_open(world.engine, &world.lane), "lane_open");
  must(canele_wakeup_open(world.engine, &world.queue, &world.wakeup), "wakeup_open");
  must(canele_notification_open(world.engine, &then, &world.slot), "notification_open");
  const int me = canele_rank(world.engine);
  world.peer = canele_size(world.engine) - 1 - me;
  must(canele_irecv(world.session, me, 1, CANELE_TAG_EXACT, world.bytes, 1, &world.pending), "irecv");
  must(canele_irecv_late(world.session, me, 2, CANELE_TAG_EXACT, &world.held), "irecv_late");
  must(canele_isend(world.session, me, 2, world.bytes, 1, &world.ended), "isend");
  canele_status_t status;
  while (canele_receive_envelope(&world.held, &status) != CANELE_OK) canele_progress(world.engine);
  must(canele_wait(&world.ended, nullptr), "wait");
  must(canele_am_open(world.session, 8, &world.queue, nullptr), "am_open");
  must(canele_am_inject(world.session, me, 8, nullptr, 0, world.bytes, 8), "am_inject");
  canele_entry_t entry;
  if (canele_queue_wait(world.engine, &world.queue, &entry, 1, UINT64_MAX) == 1) world.payload = entry.payload;
}

// ---- modes ----------------------------------------------------------------------------------------------------------

int list() {
  add_all();
  for (const Entry& entry : entries) std::printf("%s\n", entry.name.c_str());
  return 0;
}

int misuse_all() {
  add_all();
  int wrong = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::fflush(stdout);
    const pid_t pid = fork();  // before there is an engine in this process
    if (pid == 0) {
      alarm(60);
      begin_world();
      entries.clear();
      add_all();
      const int found = entries[i].in_child == InChild::ends ? 0 : entries[i].misuse();
      std::fflush(stdout);
      std::_Exit(found == 0 ? 0 : 1);
    }
    int how = 0;
    waitpid(pid, &how, 0);
    if (how != 0) {
      std::printf("%s: %s %d\n", entries[i].name.c_str(), WIFSIGNALED(how) ? "signal" : "exit code",
                  WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
      ++wrong;
    }
  }
  std::printf("%zu functions, %d of them wrong\n", entries.size(), wrong);
  return wrong == 0 ? 0 : 1;
}

/// Calls all functions in the child. The one that ends the process is last.
int call_all_in_child() {
  alarm(60);
  int wrong = 0;
  for (const Entry& entry : entries) {
    if (entry.in_child == InChild::ends) continue;
    const long answer = entry.usual();
    if (entry.in_child != InChild::refused || answer == CANELE_EFORK) continue;
    std::printf("in the child %s answered %ld, CANELE_EFORK was expected\n", entry.name.c_str(), answer);
    ++wrong;
  }
  if (wrong != 0) std::fflush(stdout), std::_Exit(1);
  canele_abort(world.engine, 5, "the child of a fork");
  return 1;
}

void exchange(int rounds, int* wrong) {
  static std::vector<char> in(100'000), out(100'000);
  for (int round = 0; round < rounds; ++round) {
    canele_request_t send{}, receive{};
    const std::size_t length = round % 2 == 0 ? 8 : in.size();
    std::memset(out.data(), round, length);
    must(canele_irecv(world.session, world.peer, 77, CANELE_TAG_EXACT, in.data(), length, &receive), "irecv");
    must(canele_isend(world.session, world.peer, 77, out.data(), length, &send), "isend");
    must(canele_wait(&receive, nullptr), "wait for a receive");
    must(canele_wait(&send, nullptr), "wait for a send");
    if (in[0] != static_cast<char>(round) || in[length - 1] != static_cast<char>(round)) ++*wrong;
  }
}

int fork_in_job() {
  begin_world();
  const int rank = canele_rank(world.engine);
  int wrong = 0;
  must(canele_task_submit(world.engine, &world.task, run_once, nullptr, CANELE_PLACE_ANY, 0), "task_submit");
  while (canele_task_in_use(&world.task) != 0) canele_progress(world.engine);
  add_all();
  exchange(20, &wrong);
  must(canele_barrier(world.session), "barrier");
  canele_request_t receive{}, send{};
  char in[8];
  const std::string out = rank == 0 ? "parent" : "child", expected = rank == 0 ? "child" : "parent";
  must(canele_irecv(world.session, world.peer, 78, CANELE_TAG_EXACT, in, sizeof in, &receive), "irecv");
  if (rank != 0) must(canele_wait(&receive, nullptr), "wait for a receive");
  must(canele_isend(world.session, world.peer, 78, out.c_str(), out.size() + 1, &send), "isend");
  if (rank == 0) {  // its message is in progress while the child lives
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) std::_Exit(call_all_in_child());
    int how = 0;
    waitpid(pid, &how, 0);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 5) {
      std::printf("the child ended with %#x, exit code 5 was expected\n", static_cast<unsigned>(how));
      ++wrong;
    }
    must(canele_wait(&receive, nullptr), "wait for a receive");
  }
  must(canele_wait(&send, nullptr), "wait for a send");
  if (in != expected) ++wrong;
  exchange(200, &wrong);
  canele_data_t whole = canele_data_contiguous(world.bytes, 1);
  must(canele_receive_bind(&world.held, &whole), "bind");
  must(canele_wait(&world.held, nullptr), "wait for an unbound receive");
  must(canele_cancel(&world.pending), "cancel");
  if (canele_wait(&world.pending, nullptr) != CANELE_ECANCELED) ++wrong;
  must(canele_lane_close(world.lane), "lane_close");
  must(canele_wakeup_close(world.wakeup), "wakeup_close");
  must(canele_key_close(world.key), "key_close");
  must(canele_memory_free(world.memory), "memory_free");
  must(canele_am_release(world.payload), "am_release");
  must(canele_group_destroy(world.group), "group_destroy");
  must(canele_session_close(world.session), "session_close");
  must(canele_finalize(world.engine), "finalize");
  if (wrong != 0) std::printf("rank %d: %d things were wrong\n", rank, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--list") return list();
  if (mode == "--misuse") return misuse_all();
  if (mode == "--fork") return fork_in_job();
  std::fprintf(stderr, "one of --list, --misuse, --fork\n");
  return 2;
}
