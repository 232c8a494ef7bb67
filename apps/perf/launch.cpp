// SPDX-License-Identifier: BSD-3-Clause
//
// Launching.
//
// The canele-run next to this program wins over one in PATH, so that a build is measured with its own launcher.
#include "launch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace canele::perf {

bool in_a_job() {
  // The variables of PMIx, PMI-1, Slurm and Open MPI. If we do not support that launcher, canele_init reports it.
  for (const char* name :
       {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_FD", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::string start_job(const std::vector<std::string>& arguments, int ranks) {
  std::error_code failed;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  if (failed) return "cannot read /proc/self/exe: " + failed.message();
  std::string launcher = std::filesystem::path(self).parent_path() / "canele-run";
  std::string option = "-n", count = std::to_string(ranks);
  std::vector<char*> command = {launcher.data(), option.data(), count.data(), self.data()};
  std::vector<std::string> texts = arguments;
  for (std::string& argument : texts) command.push_back(argument.data());
  command.push_back(nullptr);
  execv(launcher.c_str(), command.data());
  const int beside = errno;
  execvp("canele-run", command.data());
  return "cannot run " + launcher + " (" + std::strerror(beside) + ") nor canele-run from PATH (" +
         std::strerror(errno) + "); expected: ranks started by a launcher, as in mpirun -n " + count + " " + self;
}

int run_job(const std::vector<std::string>& arguments, int ranks) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {
    std::fprintf(stderr, "canele-perf: %s\n", start_job(arguments, ranks).c_str());
    _exit(1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error(std::string("cannot wait for canele-run: ") + std::strerror(errno));
  }
  constexpr int killed = 128;  // as in shells
  return WIFEXITED(status) ? WEXITSTATUS(status) : killed + WTERMSIG(status);
}

}  // namespace canele::perf
