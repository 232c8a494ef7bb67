// SPDX-License-Identifier: BSD-3-Clause
//
// Which of libfabric's providers the ofi driver uses, and what is known of it beyond what fi_getinfo() says.
//
// Who: the ofi driver, its tests. Threads: fi_getinfo() loads providers at its first call in a process; any thread.
// Surprise: fi_getinfo() answers with the capabilities that were asked for, not with all that there are. So the
//      provider is chosen first by the least that we need, and then asked for more, the best first.
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

/// The API version that we are written for.
inline constexpr std::uint32_t api_version = FI_VERSION(1, 17);

/// The best that this machine offers, restricted to a provider ("tcp;ofi_rxm") and a domain ("eth0", "mlx5_0") where
/// they are not empty. Empty, and *reason, if there is none.
Info choose_provider(const std::string& provider, const std::string& domain, std::string* reason);

std::string provider_name(const fi_info& info);
/// Its addresses mean something on this host only: shm, or an IP provider on the loopback interface.
bool is_host_only(const fi_info& info);
/// Its descriptor becomes readable when something arrives. (Some hand out one that never does, or always is.)
bool has_honest_descriptor(const fi_info& info);
/// A multi-receive buffer comes back when no message in it is under way any more, and is never written beyond its end.
/// (README.md says who fails in that. Who is not known to be sound gets a buffer for each message.)
bool has_sound_multi_receive(const fi_info& info);
/// Remote reads go on while nobody polls.
bool reads_by_hardware(const fi_info& info);
/// Endpoints per process, 0: no limit.
int max_endpoints(const fi_info& info);
/// Guesses, until something is measured: nanoseconds, and bytes per nanosecond.
std::uint32_t latency_guess(const fi_info& info);
double bandwidth_guess(const fi_info& info);

/// The same on two processes that reach each other by what is_host_only().
std::uint64_t host_mark();

}  // namespace canele::drivers::ofi
