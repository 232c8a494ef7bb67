// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of what is known about network interfaces, and of the order in which the addresses of a peer are tried.
#include "drivers/net/interface.hpp"

#include <gtest/gtest.h>
#include <net/if.h>

#include <algorithm>
#include <string>
#include <vector>

#include "drivers/tcp/address.hpp"

namespace canele::drivers::net {
namespace {

Endpoint parsed(const std::string& text) {
  Endpoint made;
  EXPECT_TRUE(Endpoint::parse(text, &made)) << text;
  return made;
}

Interface interface_of(const std::string& name, const std::string& address, unsigned prefix,
                       InterfaceKind kind = InterfaceKind::physical, unsigned speed = 0) {
  Interface made;
  made.name = name;
  made.endpoint = parsed(address);
  made.prefix = prefix;
  made.kind = kind;
  made.speed = speed;
  return made;
}

std::vector<std::string> names(const std::vector<Interface>& list) {
  std::vector<std::string> found;
  for (const Interface& one : list) found.push_back(one.name);
  return found;
}

TEST(InterfaceKinds, ComeFromTheKernelsDriverThenFromTheFlagsThenFromTheName) {
  EXPECT_EQ(kind_of("", "lo", IFF_LOOPBACK), InterfaceKind::loopback);
  EXPECT_EQ(kind_of("mlx5_core", "ib0", 0), InterfaceKind::physical);
  EXPECT_EQ(kind_of("bonding", "bond0", 0), InterfaceKind::physical);
  EXPECT_EQ(kind_of("", "eth0", 0), InterfaceKind::physical);
  EXPECT_EQ(kind_of("tun", "corporate", 0), InterfaceKind::tunnel);
  EXPECT_EQ(kind_of("vxlan", "flannel.1", 0), InterfaceKind::tunnel);
  EXPECT_EQ(kind_of("", "anything", IFF_POINTOPOINT), InterfaceKind::tunnel);
  EXPECT_EQ(kind_of("", "flannel.1", 0), InterfaceKind::tunnel);
  EXPECT_EQ(kind_of("bridge", "office", 0), InterfaceKind::internal);
  EXPECT_EQ(kind_of("veth", "eth0", 0), InterfaceKind::internal);
  EXPECT_EQ(kind_of("", "docker0", 0), InterfaceKind::internal);
}

TEST(InterfaceSubnets, AreComparedToTheBit) {
  const Interface odd = interface_of("eth0", "10.1.2.129", 25);
  EXPECT_TRUE(odd.shares_subnet(parsed("10.1.2.200")));
  EXPECT_FALSE(odd.shares_subnet(parsed("10.1.2.100")));
  EXPECT_FALSE(odd.shares_subnet(parsed("10.1.3.200")));
  EXPECT_FALSE(odd.shares_subnet(parsed("fd00::1")));
  EXPECT_TRUE(interface_of("eth0", "10.1.2.3", 32).shares_subnet(parsed("10.1.2.3")));
  EXPECT_FALSE(interface_of("eth0", "10.1.2.3", 32).shares_subnet(parsed("10.1.2.2")));
  EXPECT_FALSE(interface_of("eth0", "10.1.2.3", 0).shares_subnet(parsed("10.1.2.3"))) << "the prefix is not known";
  EXPECT_TRUE(interface_of("eth0", "fd00:0:0:1::7", 64).shares_subnet(parsed("fd00:0:0:1::9")));
  EXPECT_FALSE(interface_of("eth0", "fd00:0:0:1::7", 64).shares_subnet(parsed("fd00:0:0:2::9")));
}

TEST(InterfaceOrder, IsByKindThenCarrierThenSpeedInAllOrdersOfTheKernel) {
  Interface down = interface_of("down", "10.5.0.1", 24, InterfaceKind::physical, 400'000);
  down.carrier = false;
  std::vector<Interface> list = {interface_of("slow", "10.1.0.1", 24, InterfaceKind::physical, 1000),
                                 interface_of("fast", "10.2.0.1", 24, InterfaceKind::physical, 100'000),
                                 interface_of("bridge", "10.3.0.1", 24, InterfaceKind::internal, 400'000),
                                 interface_of("vpn", "10.4.0.1", 24, InterfaceKind::tunnel), down};
  const auto by_name = [](const Interface& a, const Interface& b) { return a.name < b.name; };
  std::sort(list.begin(), list.end(), by_name);
  do {
    std::vector<Interface> sorted = list;
    sort_best_first(&sorted);
    ASSERT_EQ(names(sorted), (std::vector<std::string>{"fast", "slow", "down", "vpn", "bridge"}));
  } while (std::next_permutation(list.begin(), list.end(), by_name));
}

TEST(InterfacesOfThisHost, AreListedWithTheirSubnets) {
  for (const Interface& one : interfaces()) {
    EXPECT_TRUE(one.shares_subnet(one.endpoint)) << one.name << " " << one.endpoint.text();
    EXPECT_EQ(one.kind == InterfaceKind::loopback, one.endpoint.is_loopback()) << one.name << one.endpoint.text();
  }
}

class Candidates : public testing::Test {
 protected:
  const std::vector<Interface> own = {interface_of("lo", "127.0.0.1", 8, InterfaceKind::loopback),
                                      interface_of("eth0", "10.1.0.7", 24),
                                      interface_of("docker0", "172.17.0.1", 16, InterfaceKind::internal),
                                      interface_of("vpn", "10.9.0.7", 24, InterfaceKind::tunnel)};

  /// Returns the texts of the candidates, in order.
  std::vector<std::string> order(const std::vector<std::string>& addresses, bool same_host) const {
    tcp::PeerAddress peer;
    peer.host = 1;
    for (const std::string& one : addresses) peer.endpoints.push_back(parsed(one));
    std::vector<std::string> found;
    for (const Endpoint& one : tcp::candidates(peer, same_host ? 1 : 2, own)) found.push_back(one.text());
    return found;
  }
};

TEST_F(Candidates, TheSubnetThatBothHostsHaveComesFirstAndWhatThisHostHoldsLast) {
  std::vector<std::string> addresses = {"10.1.0.9", "10.9.0.9", "127.0.0.1", "172.17.0.1"};
  do {
    const auto found = order(addresses, false);
    ASSERT_EQ(found.size(), 3u) << "loopback does not lead to another host";
    EXPECT_EQ(found[0], "10.1.0.9:0");
    EXPECT_EQ(found[1], "10.9.0.9:0");
    EXPECT_EQ(found[2], "172.17.0.1:0");
  } while (std::next_permutation(addresses.begin(), addresses.end()));
}

TEST_F(Candidates, WithinThisHostLoopbackComesFirst) {
  EXPECT_EQ(order({"10.1.0.7", "::1", "127.0.0.1"}, true),
            (std::vector<std::string>{"[::1]:0", "127.0.0.1:0", "10.1.0.7:0"}));
}

TEST_F(Candidates, WithoutACommonSubnetTheOrderOfThePeerStays) {
  EXPECT_EQ(order({"192.168.5.2", "fd00::2", "192.168.4.2"}, false),
            (std::vector<std::string>{"192.168.5.2:0", "[fd00::2]:0", "192.168.4.2:0"}));
}

}  // namespace
}  // namespace canele::drivers::net
