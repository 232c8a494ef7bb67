// SPDX-License-Identifier: BSD-3-Clause
//
// Chooses the libfabric provider that the ofi driver uses, and knows what fi_getinfo() does not say about providers.
//
// Used by the ofi driver and its tests. Any thread may call; fi_getinfo() loads providers at its first call in a
// process.
//
// fi_getinfo() answers with the capabilities that were asked for, not with all that exist. The provider is therefore
// first chosen by the minimum that the driver needs. It is then asked for more, the best combination first.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <string>

namespace canele::drivers::ofi {

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

/// The API version that this driver is written for.
inline constexpr std::uint32_t api_version = FI_VERSION(1, 17);

/// What the user wants, and what the messages call it. Empty: any.
struct Wanted {
  std::string provider;  ///< "tcp;ofi_rxm"
  std::string domain;    ///< "eth0", "mlx5_0"
  std::string provider_setting = "CANELE_OFI_PROVIDER", domain_setting = "CANELE_OFI_DOMAIN";
};

/// Reads the driver's argument, "provider", "provider@domain" or "@domain", over what the settings say. Returns false
/// and *reason if it is malformed.
bool read_argument(const std::string& argument, Wanted* wanted, std::string* reason);

/// Returns the best provider of this machine that fits. Empty, and *reason, if there is none.
Info choose_provider(const Wanted& wanted, std::string* reason);

/// Returns why libfabric does not list verbs;ofi_rxm on a host with an adapter for it, as far as this process can know;
/// "": no reason is known. `host`: the own host name.
std::string why_verbs_is_hidden(const std::string& host);
/// Returns whether this host has an adapter for verbs (InfiniBand, RoCE).
bool has_verbs_adapter();
std::string own_host_name();

std::string provider_name(const fi_info& info);
/// Returns true if its addresses are valid on this host only: shm, or an IP provider on the loopback interface.
bool is_host_only(const fi_info& info);
/// Returns true if its descriptor becomes readable when something arrives. (Some providers have one that never does, or
/// always is readable.)
bool has_honest_descriptor(const fi_info& info);
/// Returns true if multi-receive buffers are sound. Such a buffer comes back only when no message in it is in flight
/// any more, and is never written beyond its end. (README.md lists the providers that fail in that. A provider that is
/// not known to be sound gets a buffer for each message.)
bool has_sound_multi_receive(const fi_info& info);
/// Returns true if remote reads go on while no thread polls.
bool reads_by_hardware(const fi_info& info);
/// Returns the number of endpoints per process, 0: no limit.
int max_endpoints(const fi_info& info);
/// Estimates until something is measured: nanoseconds, and bytes per nanosecond.
std::uint32_t latency_guess(const fi_info& info);
double bandwidth_guess(const fi_info& info);

/// Returns an identity of this host. It is equal in two processes that reach each other by a provider with
/// is_host_only().
std::uint64_t host_id();

}  // namespace canele::drivers::ofi
