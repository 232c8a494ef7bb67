// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives of the C ABI: groups, operators, barrier, broadcast, reductions, scans. collective_parts_api.cpp has
// those with parts in memory.
//
// Any thread, but one at a time for one group. A handle of a group is the address of the Group; its session owns it.
#include <algorithm>
#include <new>

#include "comm/api/api.hpp"
#include "comm/api/collective_call.hpp"
#include "comm/operators/operators.hpp"

namespace canele::comm::api {
namespace {

using collectives::Group;
using collectives::Operation;
using collectives::ScheduleCache;
using collectives::Work;

constexpr std::size_t longest_label = 40;

int no_group(int code, const std::string& why) { return error(code, "canele_group_create: " + why); }

int check_members(const Engine& engine, const std::vector<int>& ranks) {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return no_group(CANELE_EINVAL, "no ranks; expected: at least this rank");
  for (const int rank : {sorted.front(), sorted.back()}) {
    if (rank >= 0 && rank < engine.size) continue;
    return no_group(CANELE_ERANK,
                    "rank " + std::to_string(rank) + ": ranks run from 0 to " + std::to_string(engine.size - 1));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return no_group(CANELE_EINVAL, "rank " + std::to_string(*twice) + " is named twice");
  if (std::binary_search(sorted.begin(), sorted.end(), engine.rank)) return CANELE_OK;
  return no_group(CANELE_EINVAL,
                  "the list lacks rank " + std::to_string(engine.rank) + "; expected: a list with the calling rank");
}

/// Returns the longest message that fits a packet, with room for its headers and for those of decorators.
std::uint64_t piece_of(const drivers::Capabilities& capabilities) {
  constexpr std::uint64_t heads = 384;
  return capabilities.max_packet > 2 * heads ? capabilities.max_packet - heads : 0;
}

/// Returns the network model, from the capabilities that drivers declare. All ranks must use equal values, and measured
/// samples differ from host to host.
collectives::Network network_of(const Engine& engine) {
  const bool one_host = engine.lifecycle.bootstrap->local_size() == engine.size;
  for (const bool memory : {one_host, !one_host}) {
    for (const auto& instance : engine.instances) {
      const drivers::Capabilities& capabilities = instance->driver->capabilities();
      if (capabilities.reaches_self || instance->memory_only() != memory) continue;
      const strategies::Costs costs = costs_of(Samples{}, "", capabilities);
      if (!one_host) return {costs.latency_ns, costs.gap_ns, costs.bytes_per_second, 0};
      // A driver declares the bandwidth of a message whose two ends meet by chance. In a collective one end writes
      // while the other reads.
      constexpr std::uint64_t together = 3;
      return {costs.latency_ns, costs.gap_ns, together * costs.bytes_per_second, engine.platform.processors(),
              memory ? piece_of(capabilities) : 0};
    }
  }
  return {};
}

/// Returns the costs of messages within the host (memory), or to other hosts. Ranks need not agree on them, so each may
/// use what was measured on its host.
collectives::Hosts::Cost cost_of(const Engine& engine, bool memory) {
  for (const auto& instance : engine.instances) {
    if (instance->driver->capabilities().reaches_self || instance->memory_only() != memory) continue;
    return {static_cast<double>(instance->costs.latency_ns),
            1e9 / static_cast<double>(instance->costs.bytes_per_second)};
  }
  return {};
}

/// Returns the placement of ranks on hosts. It assumes that ranks are placed in order, with as many on each host as on
/// this one.
collectives::Hosts hosts_of(Engine& engine, const Group& group) {
  collectives::Hosts hosts;
  hosts.within = cost_of(engine, true);
  hosts.between = cost_of(engine, false);
  const int here = std::max(1, engine.lifecycle.bootstrap->local_size());
  const auto units = static_cast<int>(engine.platform.processors());
  const bool at_home = engine.lifecycle.settings->text(Setting::worker_place) == "bind";
  hosts.cores_left = at_home ? 0 : static_cast<std::uint32_t>(std::max(0, units - here));
  for (int position = 0; here < engine.size && position < group.size(); ++position)
    hosts.of_position.push_back(static_cast<std::uint32_t>(group.world(position) / here));
  return hosts;
}

}  // namespace

int make_group(Engine& engine, const std::string& label, std::vector<int> ranks, canele_group_t** group) {
  int code = CANELE_OK;
  Session* const session = open_session(engine, std::string(Group::label_prefix) + label, CANELE_ORDER_PER_TAG, &code);
  if (session == nullptr) return no_group(code, canele_error_detail());
  const auto made = std::make_shared<Group>(engine, *session, std::move(ranks));
  std::string why;
  [[maybe_unused]] const bool well =
      collectives::parse_overrides(engine.lifecycle.settings->text(Setting::collectives), &made->overrides, &why);
  assert(well && "canele_init has checked it");
  made->network = network_of(engine);
  made->split_policy.place(hosts_of(engine, *made));
  made->split_policy.listen(engine.progress.deferred_work, made->weak_from_this());
  if (engine.lifecycle.settings->text(Setting::split_tree) != "auto")
    made->split_policy.set_override(static_cast<std::uint32_t>(engine.lifecycle.settings->number(Setting::split_tree)));
  engine.lock_for_callback();  // when a rank dies, other groups look for this one
  session->collectives = made;
  engine.unlock();
  made->listen();
  *group = reinterpret_cast<canele_group_t*>(made.get());
  return CANELE_OK;
}

namespace {

/// Checks what reductions and scans have in common: an input and an output, both of `count` elements.
void read_reduction(Collective& one, const void* input, const void* output, std::size_t count,
                    const canele_operator_t* operation, bool has_output) {
  one.operation(operation);
  one.call.length = one.bytes(count);
  one.input(input, one.call.length);
  if (has_output) one.memory(output, one.call.length, "output");
}

/// Returns the cache key of a reduction that may repeat the previous one. An invalid operator matches no earlier call.
ScheduleCache::FastCall reduction(Operation operation, int root, std::size_t count, const canele_operator_t* op) {
  std::uint64_t length = 0;
  const bool well = op != nullptr && op->combine != nullptr &&
                    !__builtin_mul_overflow(std::uint64_t{count}, std::uint64_t{op->element}, &length);
  constexpr std::uint64_t no_element = 0;
  return {operation, root, length, well ? op->element : no_element, well && op->commutes != 0};
}
Work reduced(const void* input, void* output, const canele_operator_t& operation) {
  return {static_cast<const std::byte*>(input), static_cast<std::byte*>(output), operation, 0};
}

}  // namespace
}  // namespace canele::comm::api

using namespace canele::comm;
using namespace canele::comm::api;
using collectives::Operation;

int canele_group_create(canele_engine_t* engine, const char* label, const int* ranks, size_t count,
                        canele_group_t** group) try {
  if (engine == nullptr || label == nullptr || group == nullptr) {
    return no_group(CANELE_EINVAL, "engine, label and group must be given");
  }
  if (fork::in_child) return reject_in_child("canele_group_create");
  Engine& e = engine_of(engine);
  const std::string name(label, strnlen(label, longest_label + 1));
  if (name.empty() || name.size() > longest_label) {
    return no_group(CANELE_EINVAL,
                    "a label has 1 to " + std::to_string(longest_label) + " bytes, not " + std::to_string(name.size()));
  }
  if (name.starts_with("canele."))
    return no_group(CANELE_EINVAL, "labels that begin with \"canele.\" are the library's own");
  std::vector<int> members;
  if (ranks != nullptr) {
    if (count > static_cast<std::size_t>(e.size)) {
      return no_group(CANELE_EINVAL, std::to_string(count) + " members, but the job has " + std::to_string(e.size) +
                                         " ranks, and each is named once");
    }
    members.assign(ranks, ranks + count);
    const int code = check_members(e, members);
    if (code != CANELE_OK) return code;
  }
  return make_group(e, name, std::move(members), group);
} catch (...) {
  return caught();
}

int canele_group_skip(canele_group_t* group, int code) try {
  if (group == nullptr) return error(CANELE_EINVAL, "canele_group_skip", "group is NULL");
  if (fork::in_child) return reject_in_child("canele_group_skip");
  if (code != CANELE_ENOMEM && code != CANELE_EPROTOCOL) {
    return error(CANELE_EINVAL, "canele_group_skip: error is " + std::to_string(code) +
                                    "; expected: CANELE_ENOMEM or CANELE_EPROTOCOL");
  }
  collectives::Group& skipping = group_of(group);
  const std::uint64_t number = skipping.started++;
  skipping.propagate(number, skipping.note(number, {code, skipping.engine.rank}), collectives::Group::Notified::all);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_group_revoke(canele_group_t* group) try {
  if (group == nullptr) return error(CANELE_EINVAL, "canele_group_revoke", "group is NULL");
  if (fork::in_child) return reject_in_child("canele_group_revoke");
  collectives::Group& revoked = group_of(group);
  revoked.propagate(collectives::Failures::all, revoked.note_end({CANELE_ESTATE, revoked.engine.rank}),
                    collectives::Group::Notified::all);
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_group_destroy(canele_group_t* group) try {
  if (group != nullptr && fork::in_child) return reject_in_child("canele_group_destroy");
  if (group == nullptr || group_of(group).close()) return CANELE_OK;
  return error(CANELE_EBUSY, "canele_group_destroy: collectives of it are under way: wait for them");
} catch (...) {
  return caught();
}

namespace {

[[gnu::cold]] int reject_query(const canele_group_t* group, const char* call) {
  if (group == nullptr) return error(CANELE_EINVAL, call, "group is NULL");
  return reject_in_child(call);
}

}  // namespace

int canele_group_rank(const canele_group_t* group) try {
  if (group == nullptr || fork::in_child) return reject_query(group, "canele_group_rank");
  return group_of(group).rank();
} catch (...) {
  return caught();
}

int canele_group_size(const canele_group_t* group) try {
  if (group == nullptr || fork::in_child) return reject_query(group, "canele_group_size");
  return group_of(group).size();
} catch (...) {
  return caught();
}

int canele_operator_of(enum canele_operation operation, enum canele_element element, canele_operator_t* result) try {
  const auto o = static_cast<unsigned>(operation), t = static_cast<unsigned>(element);
  if (result == nullptr || o >= operators::operator_count || t >= operators::element_count) {
    return error(CANELE_EINVAL,
                 "canele_operator_of: result, an operation of enum canele_operation and a type of enum "
                 "canele_element must be given");
  }
  const canele_combine_fn kernel = operators::kernel_of(operation, element);
  if (kernel == nullptr) {
    return error(CANELE_EINVAL, std::string("canele_operator_of: there is no ") + operators::name_of(operation) +
                                    " of " + operators::name_of(element));
  }
  *result = {kernel, nullptr, operators::size_of(element), 1};
  return CANELE_OK;
} catch (...) {
  return caught();
}

int canele_ibarrier(canele_group_t* group, const canele_collective_options_t* options, canele_request_t* request) try {
  Collective one("canele_ibarrier", Operation::barrier, group, options, request);
  return one.begin();
} catch (...) {
  return caught();
}

int canele_ibcast(canele_group_t* group, void* buffer, size_t length, int root,
                  const canele_collective_options_t* options, canele_request_t* request) try {
  RepeatedCall repeated(group, options, request);
  if (is_there(buffer) && repeated.matches({Operation::bcast, root, length})) [[likely]]
    return repeated.carry_out("canele_ibcast", Operation::bcast, {nullptr, static_cast<std::byte*>(buffer), {}, 0});
  Collective one("canele_ibcast", Operation::bcast, group, options, request);
  one.root(root);
  one.call.length = length;
  one.memory(buffer, length, "buffer");
  one.work.output = static_cast<std::byte*>(buffer);
  return one.begin();
} catch (...) {
  return caught();
}

int canele_ireduce(canele_group_t* group, const void* input, void* output, size_t count,
                   const canele_operator_t* operation, int root, const canele_collective_options_t* options,
                   canele_request_t* request) try {
  RepeatedCall repeated(group, options, request);
  const bool at_root = repeated.at_root(root);
  if (is_there(input) && (!at_root || output != nullptr) &&
      repeated.matches(reduction(Operation::reduce, root, count, operation)))
    return repeated.carry_out("canele_ireduce", Operation::reduce,
                              reduced(input, at_root ? output : nullptr, *operation));
  Collective one("canele_ireduce", Operation::reduce, group, options, request);
  one.root(root);
  read_reduction(one, input, output, count, operation, one.at_root());
  one.require(one.at_root() || !one.call.in_place, "CANELE_IN_PLACE is for the root: elsewhere give the input");
  one.work.output = one.at_root() ? static_cast<std::byte*>(output) : nullptr;
  return one.begin();
} catch (...) {
  return caught();
}

int canele_iallreduce(canele_group_t* group, const void* input, void* output, size_t count,
                      const canele_operator_t* operation, const canele_collective_options_t* options,
                      canele_request_t* request) try {
  Collective one("canele_iallreduce", Operation::allreduce, group, options, request);
  read_reduction(one, input, output, count, operation, true);
  one.work.output = static_cast<std::byte*>(output);
  return one.begin();
} catch (...) {
  return caught();
}

int canele_iscan(canele_group_t* group, const void* input, void* output, size_t count,
                 const canele_operator_t* operation, const canele_collective_options_t* options,
                 canele_request_t* request) try {
  RepeatedCall repeated(group, options, request);
  if (is_there(input) && output != nullptr && repeated.matches(reduction(Operation::scan, 0, count, operation)))
    return repeated.carry_out("canele_iscan", Operation::scan, reduced(input, output, *operation));
  Collective one("canele_iscan", Operation::scan, group, options, request);
  read_reduction(one, input, output, count, operation, true);
  one.work.output = static_cast<std::byte*>(output);
  return one.begin();
} catch (...) {
  return caught();
}

int canele_iexscan(canele_group_t* group, const void* input, void* output, size_t count,
                   const canele_operator_t* operation, const canele_collective_options_t* options,
                   canele_request_t* request) try {
  Collective one("canele_iexscan", Operation::exscan, group, options, request);
  read_reduction(one, input, output, count, operation, one.call.rank != 0 || input == CANELE_IN_PLACE);
  one.work.output = static_cast<std::byte*>(output);
  return one.begin();
} catch (...) {
  return caught();
}
