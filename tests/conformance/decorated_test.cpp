// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance of decorated drivers: check finds nothing to report, and delay and fault stay within the contract.
//
// A report of check is an error in the log, which fails a test of the kit.
#include "drivers/decorators/decorators.hpp"
#include "drivers/self/self.hpp"
#include "drivers/shm/shm.hpp"
#include "drivers/tcp/tcp.hpp"
#include "tests/conformance/kit.hpp"

namespace canele::drivers {
namespace {

template <const DriverFactory& inner>
std::unique_ptr<Driver> checked() {
  std::string error;
  return decorate("check", inner.create(), &error);
}
template <const DriverFactory& inner>
std::unique_ptr<Driver> faulty() {
  std::string error;
  return decorate("check,delay:us=20,check,fault:seed=7:full=0.02:short=0.2", inner.create(), &error);
}
std::string available() { return {}; }

const DriverFactory checked_shm = {contract_version, "shm", "shm, checked", checked<shm_factory>, available};
const DriverFactory faulty_self = {contract_version, "self", "self, with faults", faulty<self_factory>, available};
const DriverFactory faulty_tcp = {contract_version, "tcp", "tcp, with faults", faulty<tcp_factory>, available};

}  // namespace

#define CANELE_NO_FLOOD .skips = {{"bulk_2gib", "done without decorators; a report per piece adds nothing"}}
CANELE_CONFORMANCE(checked_shm, checked_shm, {CANELE_NO_FLOOD, .dial = conformance::dial_shm});
CANELE_CONFORMANCE(faulty_self, faulty_self, {CANELE_NO_FLOOD});
CANELE_CONFORMANCE(faulty_tcp, faulty_tcp, {CANELE_NO_FLOOD, .dial = conformance::dial_tcp});

}  // namespace canele::drivers
