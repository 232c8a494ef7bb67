// SPDX-License-Identifier: BSD-3-Clause
//
// Listening and addresses. See address.hpp.
#include "drivers/tcp/address.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "drivers/net/bytes.hpp"
#include "drivers/net/handshake.hpp"

namespace canele::drivers::tcp {
namespace {

using net::Endpoint;
using net::Interface;

constexpr std::uint32_t magic = 0x504354c3;
constexpr std::size_t header_size = 24;
constexpr std::size_t max_endpoints = (512 - header_size) / Endpoint::packed_size;
constexpr int ports_to_try = 1000;  // from the first: ranks of one host share the setting

bool parse_port(const std::string& text, std::uint16_t* port, std::string* why) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *port);
  if (error == std::errc() && end == text.data() + text.size()) return true;
  *why = "CANELE_TCP_PORT is \"" + text + "\"; expected: a number from 0 (any) to 65535";
  return false;
}

/// Listens on `where`, or on the next free port if a first port is given.
bool listen_from(Endpoint where, std::vector<net::UniqueFd>* sockets, std::uint16_t* port, std::string* why) {
  const int first = where.port();
  const int last = first == 0 ? 0 : std::min(first + ports_to_try - 1, 65535);
  for (int at = first; at <= last; ++at) {
    where.set_port(static_cast<std::uint16_t>(at));
    net::UniqueFd made = net::listen_on(where);
    if (made) {
      *port = net::local_endpoint(made.get()).port();
      sockets->push_back(std::move(made));
      return true;
    }
    if (errno != EADDRINUSE) break;
  }
  const int error = errno;
  *why = "cannot listen on " + where.text() + ": " + net::error_text(error);
  if (error == EADDRINUSE && first != 0) {
    *why = "no free port in " + std::to_string(first) + " to " + std::to_string(last) +
           "; set CANELE_TCP_PORT to another one";
  }
  return false;
}

/// Returns the addresses that a peer may use, best first. Those of one link only are of no use elsewhere.
std::vector<Interface> worth_publishing(std::vector<Interface> all) {
  std::erase_if(all, [](const Interface& one) { return one.endpoint.is_link_local(); });
  net::sort_best_first(&all);
  return all;
}

/// Listens on all interfaces with one socket per address family; either family is enough.
bool listen_everywhere(std::uint16_t first, const std::vector<Interface>& all, std::vector<net::UniqueFd>* sockets,
                       std::vector<Endpoint>* published, std::string* why) {
  std::uint16_t ports[2] = {0, 0};  // IPv4, IPv6
  for (const bool v6 : {false, true}) {
    std::string problem;
    if (!listen_from(Endpoint::any(v6, first), sockets, &ports[v6], &problem) && why->empty()) *why = problem;
  }
  for (const Interface& one : all) {
    const std::uint16_t port = ports[one.endpoint.v6()];
    if (port == 0) continue;
    published->push_back(one.endpoint);
    published->back().set_port(port);
  }
  return !sockets->empty();
}

bool listen_on_interface(const std::string& name, std::uint16_t first, const std::vector<Interface>& all,
                         std::vector<net::UniqueFd>* sockets, std::vector<Endpoint>* published, std::string* why) {
  Endpoint wanted;
  const bool numeric = Endpoint::parse(name, &wanted);
  std::set<std::string> names;
  for (const Interface& one : all) {
    names.insert(one.name);
    const bool fits = numeric ? one.endpoint.same_address(wanted) : one.name == name;
    if (!fits) continue;
    Endpoint where = one.endpoint;
    where.set_port(first);
    std::uint16_t port = 0;
    if (!listen_from(where, sockets, &port, why)) return false;
    where.set_port(port);
    published->push_back(where);
  }
  if (!published->empty()) return true;
  *why = "CANELE_TCP_INTERFACE is \"" + name + "\", which is not an interface or address of this host; expected:";
  for (const std::string& known : names) *why += " " + known;
  return false;
}

}  // namespace

bool is_any_interface(const std::string& interface_name) { return interface_name.empty() || interface_name == "auto"; }

bool start_listening(const std::string& interface_name, const std::string& port,
                     const std::vector<Interface>& interfaces, std::vector<net::UniqueFd>* sockets,
                     std::vector<Endpoint>* published, std::string* why) {
  std::uint16_t first = 0;
  if (!parse_port(port, &first, why)) return false;
  const std::vector<Interface> all = worth_publishing(interfaces);
  const bool listening = is_any_interface(interface_name)
                             ? listen_everywhere(first, all, sockets, published, why)
                             : listen_on_interface(interface_name, first, all, sockets, published, why);
  if (listening && published->empty()) *why = "this host has no network interface that is up, not even loopback";
  if (published->size() > max_endpoints) published->resize(max_endpoints);
  return listening && !published->empty();
}

std::vector<NetworkAddress> describe_network() {
  std::vector<NetworkAddress> found;
  for (const Interface& one : worth_publishing(net::interfaces())) {
    if (found.size() == max_endpoints) break;
    const std::string subnet = one.prefix == 0 ? "" : "/" + std::to_string(one.prefix);
    found.push_back({one.name, one.endpoint.address_text() + subnet, text_of(one.kind), one.carrier, one.speed});
  }
  return found;
}

Address pack_address(const PeerAddress& address) {
  const std::size_t count = std::min(address.endpoints.size(), max_endpoints);
  Address made(header_size + count * Endpoint::packed_size);
  net::write_le(made.data(), magic, 4);
  net::write_le(made.data() + 4, net::wire_version, 2);
  net::write_le(made.data() + 6, count, 2);
  net::write_le(made.data() + 8, address.host, 8);
  net::write_le(made.data() + 16, address.incarnation, 8);
  for (std::size_t i = 0; i < count; ++i) {
    address.endpoints[i].pack(made.data() + header_size + i * Endpoint::packed_size);
  }
  return made;
}

bool unpack_address(std::span<const std::byte> bytes, PeerAddress* out) {
  if (bytes.size() < header_size || net::read_le32(bytes.data()) != magic) return false;
  const std::size_t count = net::read_le16(bytes.data() + 6);
  if (count > max_endpoints || bytes.size() < header_size + count * Endpoint::packed_size) return false;
  out->host = net::read_le64(bytes.data() + 8);
  out->incarnation = net::read_le64(bytes.data() + 16);
  out->endpoints.clear();
  for (std::size_t i = 0; i < count; ++i) {
    Endpoint one;
    if (Endpoint::unpack(bytes.data() + header_size + i * Endpoint::packed_size, &one)) out->endpoints.push_back(one);
  }
  return !out->endpoints.empty();
}

std::vector<Endpoint> candidates(const PeerAddress& peer, std::uint64_t own_host, const std::vector<Interface>& own) {
  const bool same_host = peer.host == own_host;
  const auto order_of = [&](const Endpoint& one) {
    if (one.is_loopback()) return 0;
    if (same_host) return 1;
    const auto is_held = [&](const Interface& mine) { return mine.endpoint.same_address(one); };
    const auto is_near = [&](const Interface& mine) {
      return mine.kind == net::InterfaceKind::physical && mine.carrier && mine.shares_subnet(one);
    };
    if (std::any_of(own.begin(), own.end(), is_held)) return 3;
    return std::any_of(own.begin(), own.end(), is_near) ? 1 : 2;
  };
  std::vector<Endpoint> found = peer.endpoints;
  if (!same_host) std::erase_if(found, [](const Endpoint& one) { return one.is_loopback(); });
  std::stable_sort(found.begin(), found.end(),
                   [&](const Endpoint& a, const Endpoint& b) { return order_of(a) < order_of(b); });
  return found;
}

const Endpoint* source_for(const std::vector<Endpoint>& own, const Endpoint& to) {
  const auto fits = [&](const Endpoint& one) { return one.v6() == to.v6() && one.is_loopback() == to.is_loopback(); };
  const auto found = std::find_if(own.begin(), own.end(), fits);
  return found == own.end() ? nullptr : &*found;
}

}  // namespace canele::drivers::tcp
