// SPDX-License-Identifier: BSD-3-Clause
//
// Interfaces of this host. See interface.hpp.
//
// The kind comes from ethtool's name of the kernel driver, which is right in every network name space. /sys may show
// the interfaces of another one.
#include "drivers/net/interface.hpp"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>

namespace canele::drivers::net {
namespace {

/// Returns the address part of a socket address.
std::span<const std::byte> address_bytes(const sockaddr* address) {
  if (address->sa_family == AF_INET6)
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 1));
  return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 1));
}

unsigned prefix_of(const sockaddr* mask, int family) {
  if (mask == nullptr) return 0;
  sockaddr_storage copy = {};  // the kernel may leave the family of a mask out
  std::memcpy(&copy, mask, family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  copy.ss_family = static_cast<sa_family_t>(family);
  int bits = 0;
  for (const std::byte one : address_bytes(reinterpret_cast<const sockaddr*>(&copy)))
    bits += std::popcount(std::to_integer<unsigned>(one));
  return static_cast<unsigned>(bits);
}

/// Asks the kernel with one of ethtool's requests. Returns false if the interface does not answer it.
template <typename Question>
bool ask_ethtool(int fd, const char* name, std::uint32_t command, Question* question) {
  if (fd < 0) return false;
  question->cmd = command;
  ifreq request = {};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(question);
  return ::ioctl(fd, SIOCETHTOOL, &request) == 0;
}

std::string driver_of(int fd, const char* name) {
  ethtool_drvinfo info = {};
  return ask_ethtool(fd, name, ETHTOOL_GDRVINFO, &info) ? std::string(info.driver) : std::string();
}

unsigned speed_of(int fd, const char* name) {
  ethtool_cmd link = {};
  if (!ask_ethtool(fd, name, ETHTOOL_GSET, &link)) return 0;
  const std::uint32_t speed = ethtool_cmd_speed(&link);
  return speed == static_cast<std::uint32_t>(SPEED_UNKNOWN) || speed == 0xffff ? 0 : speed;
}

template <std::size_t Count>
bool any_equals(const std::array<std::string_view, Count>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

template <std::size_t Count>
bool any_begins(const std::array<std::string_view, Count>& list, std::string_view text) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view one) { return text.starts_with(one); });
}

}  // namespace

const char* text_of(InterfaceKind kind) {
  switch (kind) {
    case InterfaceKind::loopback:
      return "loopback";
    case InterfaceKind::physical:
      return "physical";
    case InterfaceKind::tunnel:
      return "tunnel";
    case InterfaceKind::internal:
      return "internal";
  }
  return "unknown";
}

bool Interface::shares_subnet(const Endpoint& other) const {
  if (endpoint.v6() != other.v6()) return false;
  const auto own = address_bytes(endpoint.address()), its = address_bytes(other.address());
  const std::size_t whole = std::min<std::size_t>(prefix / 8, own.size());
  if (prefix == 0 || !std::equal(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(whole), its.begin()))
    return false;
  if (prefix % 8 == 0 || whole == own.size()) return true;
  return std::to_integer<unsigned>(own[whole] ^ its[whole]) >> (8 - prefix % 8) == 0;
}

InterfaceKind kind_of(const std::string& driver, const std::string& name, unsigned flags) {
  static constexpr std::array<std::string_view, 3> internal_drivers = {"bridge", "veth", "dummy"};
  static constexpr std::array<std::string_view, 4> tunnel_drivers = {"tun", "vxlan", "geneve", "wireguard"};
  static constexpr std::array<std::string_view, 10> internal_names = {"docker", "br-", "veth",   "virbr", "lxc",
                                                                      "lxdbr",  "cni", "podman", "cali",  "vmnet"};
  static constexpr std::array<std::string_view, 9> tunnel_names = {"tun",       "tap", "wg",    "flannel", "cilium",
                                                                   "tailscale", "zt",  "vxlan", "ham"};
  if ((flags & IFF_LOOPBACK) != 0) return InterfaceKind::loopback;
  if (any_equals(tunnel_drivers, driver) || (flags & IFF_POINTOPOINT) != 0) return InterfaceKind::tunnel;
  if (any_equals(internal_drivers, driver) || any_begins(internal_names, name)) return InterfaceKind::internal;
  return any_begins(tunnel_names, name) ? InterfaceKind::tunnel : InterfaceKind::physical;
}

std::vector<Interface> interfaces() {
  std::vector<Interface> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  const UniqueFd asks(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));  // without it, kinds follow from names
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Interface one;
    one.name = at->ifa_name;
    one.endpoint = Endpoint::from(at->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    one.prefix = prefix_of(at->ifa_netmask, family);
    one.kind = kind_of(driver_of(asks.get(), at->ifa_name), one.name, at->ifa_flags);
    one.carrier = (at->ifa_flags & IFF_RUNNING) != 0;
    one.speed = speed_of(asks.get(), at->ifa_name);
    found.push_back(std::move(one));
  }
  freeifaddrs(list);
  return found;
}

void sort_best_first(std::vector<Interface>* list) {
  const auto key = [](const Interface& one) {
    return std::tuple(one.kind, !one.carrier, -static_cast<std::int64_t>(one.speed), one.endpoint.v6());
  };
  std::stable_sort(list->begin(), list->end(), [&](const Interface& a, const Interface& b) { return key(a) < key(b); });
}

}  // namespace canele::drivers::net
