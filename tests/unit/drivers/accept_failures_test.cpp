// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of connections that cannot be accepted: the first one of the queue is closed, and a listener that nothing helps
// is given up after patience_ns of the test's clock.
#include "drivers/net/accept_failures.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

#include "tests/conformance/driver_kit.hpp"

namespace canele::drivers::net {
namespace {

using conformance::KitContext;

constexpr std::uint64_t patience = AcceptFailures::patience_ns;

struct Listening {
  Listening() : fd(listen_on(Endpoint::loopback(false, 0))), caller(start_connect(local_endpoint(fd.get()))) {}
  /// Returns true if this end of the connection was closed by the other one.
  bool is_closed() const {
    std::byte one;
    return ::recv(caller.get(), &one, 1, 0) == 0;
  }

  UniqueFd fd;
  UniqueFd caller;
};

TEST(AcceptFailures, CloseTheFirstConnectionWithoutDescriptors) {
  KitContext context(0, 2);
  AcceptFailures failures;
  ASSERT_TRUE(failures.open());
  Listening at;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(failures.handle(context, at.fd.get(), EMFILE));
    EXPECT_TRUE(at.is_closed());
    at.caller = start_connect(local_endpoint(at.fd.get()));
    context.clock_ns += patience;
  }
  EXPECT_EQ(context.logged.size(), 1u);
}

TEST(AcceptFailures, GiveTheListenerUpAfterAWhile) {
  for (const int error : {ENOMEM, ENOBUFS, EMFILE}) {
    KitContext context(0, 2);
    AcceptFailures failures;  // has no spare descriptor
    EXPECT_TRUE(failures.handle(context, -1, error));
    context.clock_ns += patience - 1;
    EXPECT_TRUE(failures.handle(context, -1, error));
    context.clock_ns += 1;
    EXPECT_FALSE(failures.handle(context, -1, error)) << error;
    EXPECT_EQ(context.logged.size(), 2u);
  }
}

TEST(AcceptFailures, CountFromTheLastConnectionThatWasAccepted) {
  KitContext context(0, 2);
  AcceptFailures failures;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(failures.handle(context, -1, ENOMEM));
    context.clock_ns += patience;
    failures.note_accepted();
  }
}

}  // namespace
}  // namespace canele::drivers::net
