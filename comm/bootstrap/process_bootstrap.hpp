// SPDX-License-Identifier: BSD-3-Clause
//
// ProcessBootstrap: a Bootstrap that serves the whole process, whatever the number of engines that use it.
//
// process_job.cpp holds it; pmix.cpp and pmi1.cpp make one. Threads: as bootstrap.hpp says, except that the caller
// makes fences one after the other, while other engines call get() and receive answers. PMIx and hydra let a process
// leave a job once. So the end of an engine does not end its connection.
#pragma once

#include "comm/bootstrap/bootstrap.hpp"

namespace canele::comm {

class ProcessBootstrap : public Bootstrap {
 public:
  /// Called when the last engine has ended, and others may come. Leaves the job if the process can join again, or if
  /// the launcher's rules require it; else stays in the job. finalize() follows when the process ends.
  virtual void rest() = 0;
  /// Called before the first engine after rest(). Returns false and sets *why if the launcher does not let the process
  /// join again.
  virtual bool resume(std::uint64_t timeout_ns, std::string* why) = 0;
};

}  // namespace canele::comm
