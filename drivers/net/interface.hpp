// SPDX-License-Identifier: BSD-3-Clause
//
// The network interfaces of this host, and in which order another host should try their addresses.
//
// Used by the tcp driver and by canele-info. No shared state, so any thread may call.
//
// What the kernel says of an interface orders the attempts and excludes none: an address may be held by every host (a
// bridge for containers), or lead nowhere (a tunnel). Only a handshake proves that an address leads to the peer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "drivers/net/socket.hpp"

namespace canele::drivers::net {

/// What an interface is made of, the most promising first.
enum class InterfaceKind : std::uint8_t {
  loopback,  ///< leads to this host only.
  physical,  ///< a device, a bond or VLAN of devices, or a kind that is not known here.
  tunnel,    ///< carries packets inside of others: VPN, vxlan, point to point.
  internal,  ///< connects virtual machines or containers of this host: bridge, veth, dummy.
};
/// Returns the word for users, for example "physical".
const char* text_of(InterfaceKind kind);

/// One address of an interface that is up. An interface with several addresses is listed several times.
struct Interface {
  std::string name;
  Endpoint endpoint;
  unsigned prefix = 0;  ///< how many leading bits of the address name its subnet.
  InterfaceKind kind = InterfaceKind::physical;
  bool carrier = true;  ///< the link is up, too.
  unsigned speed = 0;   ///< in Mbit/s; 0: the kernel does not know it.

  /// Returns whether `other` is an address of the subnet of this one.
  bool shares_subnet(const Endpoint& other) const;
};

/// Returns the addresses of all interfaces that are up, in the kernel's order. Empty if the kernel does not list them.
std::vector<Interface> interfaces();

/// Returns the kind of an interface by the name of its kernel driver (empty: unknown), its own name, and its flags
/// (IFF_LOOPBACK, IFF_POINTOPOINT).
InterfaceKind kind_of(const std::string& driver, const std::string& name, unsigned flags);

/// Sorts: loopback, physical, tunnel, internal. Within a kind, those with a carrier come first, then the faster ones,
/// then IPv4. Otherwise the order stays.
void sort_best_first(std::vector<Interface>* list);

}  // namespace canele::drivers::net
