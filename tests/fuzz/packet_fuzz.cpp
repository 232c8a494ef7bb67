// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of a hostile peer, to a real engine that sends, receives, probes and cancels meanwhile.
//
// Surprise: an input is a script (script.hpp). It may say "the handle that the engine named last", so that what is
//     checked behind a good handle is reached; the memory of a request is freed at once when it ends, so that
//     AddressSanitizer sees whoever still writes there.
#include "script.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  canele::fuzz::Input input(data, size);
  canele::fuzz::Script(input).run();
  return 0;
}
