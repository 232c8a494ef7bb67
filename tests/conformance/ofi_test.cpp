// SPDX-License-Identifier: BSD-3-Clause
//
// Conformance of the ofi driver on three providers of libfabric.
//
// After kill -9, libfabric's shm provider leaves its files in /dev/shm; the kit removes them.
#include "drivers/ofi/ofi.hpp"

#include "tests/conformance/kit.hpp"

using canele::drivers::ofi_factory;

CANELE_CONFORMANCE(ofi_tcp_rxm, ofi_factory,
                   {.settings = {{"OFI_PROVIDER", "tcp;ofi_rxm"}}, .keeps_descriptors = true});
CANELE_CONFORMANCE(ofi_shm, ofi_factory,
                   {.settings = {{"OFI_PROVIDER", "shm"}}, .leaves_files = true, .keeps_descriptors = true});
CANELE_CONFORMANCE(ofi_udp_rxd, ofi_factory,
                   {.settings = {{"OFI_PROVIDER", "udp;ofi_rxd"}}, .slow = true, .keeps_descriptors = true});
