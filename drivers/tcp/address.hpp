// SPDX-License-Identifier: BSD-3-Clause
//
// Where a rank listens, and how the other ranks learn it.
//
// Used by the connector. No shared state, so any thread may call.
//
//   Address, little-endian:  0 u32 magic  4 u16 wire version  6 u16 count  8 u64 host id  16 u64 incarnation
//                            24 count × 24 bytes: Endpoint::pack
//
// The loopback addresses are published too. A peer uses them exactly if the host id is its own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "drivers/driver.hpp"
#include "drivers/net/interface.hpp"
#include "drivers/net/socket.hpp"

namespace canele::drivers::tcp {

/// Returns whether `interface_name` means all interfaces.
bool is_any_interface(const std::string& interface_name);

/// Listens where the settings say; appends the sockets, and the endpoints to publish, best first.
/// `interfaces`: those of this host. False and *why on failure.
bool start_listening(const std::string& interface_name, const std::string& port,
                     const std::vector<net::Interface>& interfaces, std::vector<net::UniqueFd>* sockets,
                     std::vector<net::Endpoint>* published, std::string* why);

/// Returns what is published with the interface "auto", for users.
std::vector<NetworkAddress> describe_network();

struct PeerAddress {
  std::uint64_t host = 0;
  std::uint64_t incarnation = 0;
  std::vector<net::Endpoint> endpoints;
};

Address pack_address(const PeerAddress& address);
/// Parses an address. Returns false if it is not an address of this driver.
bool unpack_address(std::span<const std::byte> bytes, PeerAddress* out);

/// Returns the endpoints worth trying from this host, best first. A rank of this host is reached by loopback. For
/// others, addresses in a subnet of a physical interface of this host come first. The order of the peer decides the
/// rest. Addresses that this host holds itself come last: they lead to this host. `own`: the interfaces of this host.
std::vector<net::Endpoint> candidates(const PeerAddress& peer, std::uint64_t own_host,
                                      const std::vector<net::Interface>& own = {});

/// Returns that one of the addresses of the chosen interface from which a connection to `to` leaves; nullptr: none
/// fits, and the kernel chooses.
const net::Endpoint* source_for(const std::vector<net::Endpoint>& own, const net::Endpoint& to);

}  // namespace canele::drivers::tcp
