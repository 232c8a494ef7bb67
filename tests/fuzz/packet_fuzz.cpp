// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of a hostile peer, to a real engine that sends, receives, probes and cancels meanwhile.
//
// An input is a script (script.hpp). It may say "the handle that the engine named last", so that the checks behind a
// valid handle are reached. The memory of a request is freed as soon as the request ends, so that AddressSanitizer
// reports any later write.
#include "script.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  canele::fuzz::Input input(data, size);
  canele::fuzz::Script(input).run();
  return 0;
}
