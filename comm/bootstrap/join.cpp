// SPDX-License-Identifier: BSD-3-Clause
//
// join_job: finds out from the environment which launcher has started this process, and joins its job.
//
// The engine calls it once, at start, on one thread. A trace of any launcher rules out the job of one rank. Otherwise N
// separate ranks might each believe to be the whole job. Each would write the same result files, without any error.
#include <array>
#include <string>
#include <string_view>

#include "comm/bootstrap/attended.hpp"
#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/pmi1.hpp"
#include "comm/bootstrap/pmix.hpp"
#include "comm/bootstrap/process_job.hpp"

namespace canele::comm {
namespace {

/// Returns the first of `names` that is set, or nullptr.
template <std::size_t n>
const char* first_set(Platform& platform, const std::array<const char*, n>& names) {
  for (const char* name : names)
    if (platform.variable(name) != nullptr) return name;
  return nullptr;
}

constexpr std::array pmix_names = {"PMIX_NAMESPACE",   "PMIX_RANK",         "PMIX_SERVER_URI41", "PMIX_SERVER_URI4",
                                   "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"};
constexpr std::array hydra_names = {"PMI_PORT", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"};
constexpr std::array ompi_names = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"};

bool slurm_step(Platform& platform) {
  return platform.variable("SLURM_PROCID") != nullptr &&
         (platform.variable("SLURM_STEP_ID") != nullptr || platform.variable("SLURM_STEPID") != nullptr);
}

/// Returns true if the launcher speaks PMI-1. srun --mpi=pmi2 sets PMI_FD, too, but uses another protocol there. hydra
/// and canele-run set MPI_LOCALNRANKS, and may have inherited the other variables from a Slurm job around them.
bool speaks_pmi1(Platform& platform) {
  if (platform.variable("PMI_FD") == nullptr) return false;
  if (platform.variable("MPI_LOCALNRANKS") != nullptr) return true;
  const char* type = platform.variable("SLURM_MPI_TYPE");
  const bool says_pmi2 = type != nullptr && std::string_view(type) == "pmi2";
  return platform.variable("PMI_JOBID") == nullptr && !says_pmi2 && !slurm_step(platform);
}

/// Returns "" or the launcher that cannot be joined, with what to do.
std::string unsupported_launcher(Platform& platform) {
  const std::string instead = ": use srun --mpi=pmix, or canele-run";
  if (platform.variable("PMI_FD") != nullptr) return "started by srun with PMI-2 (PMI_FD is set)" + instead;
  if (slurm_step(platform)) return "started by srun (SLURM_PROCID is set) without PMIx" + instead;
  if (const char* name = first_set(platform, hydra_names))
    return "started by mpiexec.hydra (" + std::string(name) +
           " is set), but PMI_FD, the descriptor to it, is missing: it must reach the ranks (a script between may "
           "clear the environment; mpiexec -pmi-port is not supported)";
  if (const char* name = first_set(platform, ompi_names))
    return "started by mpirun of Open MPI (" + std::string(name) +
           " is set), but its PMIx variables (PMIX_NAMESPACE, PMIX_RANK) are missing: they must reach the ranks; does "
           "a script between clear the environment?";
  return {};
}

std::unique_ptr<ProcessBootstrap> join_attended_pmi1(Platform& platform, std::uint64_t timeout_ns, std::string* why) {
  return attend(platform, join_pmi1(platform, timeout_ns, why));
}

}  // namespace

std::unique_ptr<Bootstrap> join_job(Platform& platform, std::uint64_t timeout_ns, std::string* why) {
  const auto join_by = [&](std::unique_ptr<ProcessBootstrap> (*join)(Platform&, std::uint64_t, std::string*)) {
    const auto connect = [&](std::string* problem) { return join(platform, timeout_ns, problem); };
    return ProcessJob::here().join(platform, timeout_ns, connect, why);
  };
  if (first_set(platform, pmix_names) != nullptr) return join_by(join_pmix);
  if (speaks_pmi1(platform)) return join_by(join_attended_pmi1);
  if (std::string problem = unsupported_launcher(platform); !problem.empty()) {
    *why = std::move(problem);
    return nullptr;
  }
  return make_singleton(platform);
}

}  // namespace canele::comm
