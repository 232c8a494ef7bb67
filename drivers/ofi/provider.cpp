// SPDX-License-Identifier: BSD-3-Clause
//
// The choice of a provider. See provider.hpp.
//
// Nothing is set in the environment of the host program, not even FI_MR_CACHE_MONITOR: other users of libfabric in the
// process would see it. The table below holds what must be known about a provider.
#include "drivers/ofi/provider.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>

#include "drivers/net/siphash.hpp"

namespace canele::drivers::ofi {
namespace {

struct Known {
  std::string_view name;
  int merit;  ///< 0: only when asked for by name
  bool honest_descriptor;
  bool sound_multi_receive;
  bool hardware_reads;
  int max_endpoints;
  std::uint32_t latency_ns;
  double bandwidth;
};
// Sorted by merit. A provider that is not listed ranks between the fabrics and tcp.
constexpr Known table[] = {
    {"cxi", 90, true, true, true, 0, 2000, 20.0},
    {"efa", 85, true, true, false, 0, 15000, 10.0},
    {"opx", 82, false, true, false, 0, 1500, 10.0},
    {"psm3", 81, false, true, false, 0, 2000, 10.0},
    {"psm2", 80, false, true, false, 1, 1500, 10.0},
    {"verbs;ofi_rxm", 75, true, false, true, 0, 2000, 10.0},
    {"ucx", 70, false, true, false, 0, 2000, 10.0},
    {"", 60, false, false, false, 0, 5000, 2.0},
    {"tcp;ofi_rxm", 50, true, false, false, 0, 10000, 3.0},
    {"tcp", 49, true, false, false, 0, 10000, 3.0},
    {"verbs;ofi_rxd", 15, false, false, false, 0, 10000, 1.0},
    {"psm2;ofi_rxd", 12, false, false, false, 1, 10000, 1.0},
    {"udp;ofi_rxd", 10, false, false, false, 0, 30000, 0.1},
    {"shm", 0, false, false, false, 0, 1000, 3.0},
    {"sm2", 0, false, false, false, 0, 1000, 3.0},
    {"net", 0, false, false, false, 0, 10000, 3.0},
    {"net;ofi_rxm", 0, false, false, false, 0, 10000, 3.0},
    {"psm", 0, false, false, false, 1, 2000, 3.0},
    {"lnx", 0, false, false, false, 0, 2000, 3.0},
    {"ofi_mrail", 0, false, false, false, 0, 10000, 3.0},
};
constexpr std::string_view deprecated = "sockets";  // its round trips are too slow for any use

const Known& known(std::string_view name) {
  const Known* unlisted = nullptr;
  for (const Known& one : table) {
    if (one.name == name) return one;
    if (one.name.empty()) unlisted = &one;
  }
  return *unlisted;
}

/// Returns 3: any host; 2: link-local, which needs a scope; 1: the loopback interface.
int reach_of(const fi_info& info) {
  if (info.src_addr == nullptr) return 3;
  if (info.addr_format == FI_SOCKADDR_IN && info.src_addrlen >= sizeof(sockaddr_in)) {
    const auto* const in = static_cast<const sockaddr_in*>(info.src_addr);
    return (ntohl(in->sin_addr.s_addr) >> 24) == 127 ? 1 : 3;
  }
  if (info.addr_format == FI_SOCKADDR_IN6 && info.src_addrlen >= sizeof(sockaddr_in6)) {
    const auto* const in6 = static_cast<const sockaddr_in6*>(info.src_addr);
    if (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr)) return 1;
    return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? 2 : 3;
  }
  return 3;
}

std::string domain_name(const fi_info& info) {
  const char* const name = info.domain_attr != nullptr ? info.domain_attr->name : nullptr;
  return name != nullptr ? name : "";
}

Info make_hints(std::uint64_t caps, std::uint64_t order, const std::string& provider) {
  Info hints(fi_allocinfo());
  if (!hints) return hints;
  hints->caps = caps;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;  // every operation of this driver begins with an fi_context2
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;  // the engine serialises
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
  if (!provider.empty()) hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // fi_freeinfo() frees it
  return hints;
}

/// Returns the best that is available for `hints`. `like` restricts it to equal provider, fabric, domain and address
/// kind.
Info best(const fi_info* hints, const std::string& provider, const std::string& domain, const fi_info* like,
          std::set<std::string>* seen) {
  fi_info* all = nullptr;
  if (hints == nullptr || fi_getinfo(api_version, nullptr, nullptr, 0, hints, &all) != 0) return nullptr;
  const Info owner(all);
  const fi_info* found = nullptr;
  int merit_found = 0;
  for (const fi_info* one = all; one != nullptr; one = one->next) {
    const std::string name = provider_name(*one);
    const int merit = provider.empty() ? known(name).merit : 1;
    if (name == deprecated || merit == 0) continue;
    if (seen != nullptr) seen->insert(domain_name(*one));
    if (!domain.empty() && domain_name(*one) != domain) continue;
    if (like != nullptr &&
        (name != provider_name(*like) || domain_name(*one) != domain_name(*like) ||
         std::strcmp(one->fabric_attr->name, like->fabric_attr->name) != 0 || one->addr_format != like->addr_format)) {
      continue;
    }
    const int value = merit * 4 + reach_of(*one);
    if (value > merit_found) merit_found = value, found = one;
  }
  return Info(found != nullptr ? fi_dupinfo(found) : nullptr);
}

std::string not_found(const Wanted& wanted, const std::set<std::string>& seen) {
  if (!seen.empty() && !wanted.domain.empty()) {
    std::string text =
        wanted.domain_setting + " is \"" + wanted.domain + "\", which is not a libfabric domain here; expected:";
    for (const std::string& one : seen) text += " " + one;
    return text;
  }
  const std::string& provider = wanted.provider;
  const std::string which = provider.empty() ? "no provider for a network" : "no provider \"" + provider + "\"";
  std::string text = "libfabric has " + which +
                     " with reliable datagrams on this machine (fi_info -t FI_EP_RDM lists them)" +
                     (provider.empty() ? "; shm is used only if CANELE_OFI_PROVIDER names it"
                                       : "; set " + wanted.provider_setting + " to another one");
  const bool is_verbs = provider.rfind("verbs", 0) == 0;
  const std::string hidden = is_verbs ? why_verbs_is_hidden(own_host_name()) : "";
  return text + (hidden.empty() ? "" : "; " + hidden);
}

}  // namespace

std::string provider_name(const fi_info& info) {
  const char* const name = info.fabric_attr != nullptr ? info.fabric_attr->prov_name : nullptr;
  return name != nullptr ? name : "";
}

bool read_argument(const std::string& argument, Wanted* wanted, std::string* reason) {
  if (argument.empty()) return true;
  const std::size_t at = argument.find('@');
  const std::string provider = argument.substr(0, at);
  const std::string domain = at == std::string::npos ? "" : argument.substr(at + 1);
  if ((at != std::string::npos && domain.empty()) || domain.find('@') != std::string::npos) {
    *reason = "the argument of ofi in CANELE_DRIVERS is \"" + argument +
              "\"; expected: PROVIDER, PROVIDER@DOMAIN or @DOMAIN, e.g. ofi:verbs;ofi_rxm@mlx5_0";
    return false;
  }
  if (!provider.empty()) {
    wanted->provider = provider;
    wanted->provider_setting = "the provider of ofi:PROVIDER[@DOMAIN] in CANELE_DRIVERS";
  }
  if (!domain.empty()) {
    wanted->domain = domain;
    wanted->domain_setting = "the domain of ofi:[PROVIDER]@DOMAIN in CANELE_DRIVERS";
  }
  return true;
}

std::string own_host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

bool has_verbs_adapter() {
  std::error_code none;
  const std::filesystem::directory_iterator adapters("/sys/class/infiniband", none);
  return !none && adapters != std::filesystem::directory_iterator();
}

std::string why_verbs_is_hidden(const std::string& host) {
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (error == 0) {
    ::freeaddrinfo(found);
    return "";
  }
  return "this host's own name, \"" + host + "\", does not resolve (" + ::gai_strerror(error) +
         "), and libfabric lists verbs;ofi_rxm only where it does: add it to /etc/hosts";
}

Info choose_provider(const Wanted& wanted, std::string* reason) {
  if (FI_VERSION_LT(fi_version(), api_version)) {
    *reason = "libfabric " + std::to_string(FI_MAJOR(fi_version())) + "." + std::to_string(FI_MINOR(fi_version())) +
              " is too old; expected: 1.17 or newer";
    return nullptr;
  }
  if (wanted.provider == deprecated) {
    *reason = wanted.provider_setting + " is \"sockets\", which libfabric has deprecated; expected: \"tcp;ofi_rxm\"";
    return nullptr;
  }
  std::set<std::string> seen;
  const Info any = best(make_hints(FI_MSG, 0, wanted.provider).get(), wanted.provider, wanted.domain, nullptr, &seen);
  if (!any) {
    *reason = not_found(wanted, seen);
    return nullptr;
  }
  constexpr std::uint64_t several = FI_MULTI_RECV;
  constexpr std::uint64_t copies = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  for (const std::uint64_t order : {std::uint64_t{FI_ORDER_SAS}, std::uint64_t{FI_ORDER_NONE}}) {
    for (const std::uint64_t more : {copies | several, copies, several, std::uint64_t{0}}) {
      Info with = best(make_hints(FI_MSG | more, order, provider_name(*any)).get(), provider_name(*any),
                       domain_name(*any), any.get(), nullptr);
      if (with) return with;
    }
  }
  *reason = "libfabric's provider " + provider_name(*any) + " appeared and went away; try again";
  return nullptr;
}

bool is_host_only(const fi_info& info) {
  const std::string name = provider_name(info);
  return name == "shm" || name == "sm2" || reach_of(info) == 1;
}
bool has_honest_descriptor(const fi_info& info) { return known(provider_name(info)).honest_descriptor; }
bool has_sound_multi_receive(const fi_info& info) { return known(provider_name(info)).sound_multi_receive; }
bool reads_by_hardware(const fi_info& info) { return known(provider_name(info)).hardware_reads; }
int max_endpoints(const fi_info& info) { return known(provider_name(info)).max_endpoints; }
std::uint32_t latency_guess(const fi_info& info) { return known(provider_name(info)).latency_ns; }
double bandwidth_guess(const fi_info& info) { return known(provider_name(info)).bandwidth; }

std::uint64_t host_id() {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string text{std::istreambuf_iterator<char>(boot), {}};
  for (const char* path : {"/proc/self/ns/net", "/proc/self/ns/pid", "/dev/shm"}) {
    struct stat what = {};
    if (::stat(path, &what) == 0) text += ' ' + std::to_string(what.st_dev) + ':' + std::to_string(what.st_ino);
  }
  constexpr std::byte no_secret[16] = {};
  return net::siphash24(no_secret, std::as_bytes(std::span(text)));
}

}  // namespace canele::drivers::ofi
