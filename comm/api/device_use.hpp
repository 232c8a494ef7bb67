// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory in the calls of the C ABI: sends and receives take it, all other calls reject it.
//
// Any thread. Each check is one predictable branch in a process without a device.
#pragma once

#include <optional>

#include "comm/api/api.hpp"
#include "comm/device/devices.hpp"

namespace canele::comm::api {

/// Returns whether data may be in device memory, or is described for it.
inline bool concerns_devices(const Context& context, const canele_data_t& data) {
  return device::present(context) || data.segments == device::device_segments;
}

/// Posts a send, or a receive with a buffer, if it concerns devices. Empty: it does not, and nothing was done; else the
/// code to answer. The arguments have been checked.
[[gnu::cold]] std::optional<int> send_by_device(Session& session, int destination, std::uint64_t tag,
                                                const canele_data_t& data, const SendOptions& options, Request& request,
                                                const char* call);
[[gnu::cold]] std::optional<int> receive_by_device(const Posting& posting, const char* call);
/// The same for a multicast, which is taken if the answer is CANELE_OK.
[[gnu::cold]] std::optional<int> multicast_by_device(Session& session, std::uint64_t tag, const canele_data_t& data,
                                                     std::size_t header, std::unique_ptr<Multicast>& multicast,
                                                     Request& request);
[[gnu::cold]] std::optional<int> bind_by_device(Request& request, const canele_data_t& data, const char* call);

/// Return CANELE_EINVAL for device memory in a call that takes host memory only.
[[gnu::cold]] int reject_if_on_device(Engine& engine, const canele_data_t& data, const char* call);
[[gnu::cold]] int reject_if_on_device(Engine& engine, const void* address, const char* call);
inline int check_host_data(Engine& engine, const canele_data_t& data, const char* call) {
  return concerns_devices(engine, data) ? reject_if_on_device(engine, data, call) : CANELE_OK;
}
inline int check_host_memory(Engine& engine, const void* address, const char* call) {
  return device::present(engine) ? reject_if_on_device(engine, address, call) : CANELE_OK;
}

}  // namespace canele::comm::api
