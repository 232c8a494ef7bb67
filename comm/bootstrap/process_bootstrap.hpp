// SPDX-License-Identifier: BSD-3-Clause
//
// ProcessBootstrap: a Bootstrap that is one for the process, whatever the number of engines that use it.
//
// Who: process_job.cpp holds it; pmix.cpp and pmi1.cpp make one. Threads: as bootstrap.hpp says, but fences are taken
// in
//     turns by the caller, while other engines ask and hear.
// Surprise: PMIx and hydra let a process leave a job once. So the end of an engine is not the end of its connection.
#pragma once

#include "comm/bootstrap/bootstrap.hpp"

namespace canele::comm {

class ProcessBootstrap : public Bootstrap {
 public:
  /// The last engine has ended, and others may come. Leaves the job where that can be undone, or where the launcher's
  /// rules want it; else stays in it. finalize() follows when the process ends.
  virtual void rest() = 0;
  /// Before the first engine after rest(). false and *why: the launcher does not let the process in again.
  virtual bool resume(std::uint64_t timeout_ns, std::string* why) = 0;
};

}  // namespace canele::comm
