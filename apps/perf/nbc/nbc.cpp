// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs of nbc on our native API.
#include "nbc.hpp"

#include <cstdio>
#include <stdexcept>

#include "../job.hpp"
#include "../launch.hpp"
#include "../pin.hpp"
#include "benchmarks.hpp"
#include "layout.hpp"

namespace canele::perf::nbc {
namespace {

std::vector<std::string> settings_for(const Options& options, const std::string& driver, int worker_core) {
  const std::string worker = options.dedicated() ? "bound" : options.configuration();
  std::vector<std::string> settings = {"CANELE_WORKER=" + worker};
  if (worker != "none" && worker_core >= 0) {
    settings.push_back("CANELE_WORKER_CORE=" + std::to_string(worker_core));
  }
  if (!driver.empty()) settings.push_back("CANELE_DRIVERS=" + driver);
  return settings;
}

/// Returns the command line with this configuration instead of those that it names.
std::vector<std::string> with_configuration(const std::vector<std::string>& arguments, const std::string& name) {
  const std::string option = "--configuration";
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option) {
      ++i;  // its value
    } else if (arguments[i].rfind(option + "=", 0) != 0) {
      changed.push_back(arguments[i]);
    }
  }
  changed.insert(changed.end(), {option, name});
  return changed;
}

}  // namespace

int each_configuration(const Options& options, const std::vector<std::string>& arguments) {
  int code = 0;
  for (const std::string& name : options.configurations) {
    const int ended = run_job(with_configuration(arguments, name), options.ranks);
    if (ended == 0) continue;
    std::fprintf(stderr, "canele-perf: nbc with configuration %s has failed (exit code %d)\n", name.c_str(), ended);
    code = 1;
  }
  return code;
}

int in_job(const Options& options, const std::string& driver) {
  if (options.configurations.size() != 1) {
    throw std::runtime_error(
        "in a job, nbc has one configuration; expected: one --configuration (outside of a job it starts one for each)");
  }
  const std::vector<int> allowed = allowed_cores();
  const int worker_core = worker_core_of(options, allowed);
  // A program that leaves a core to its worker is bound to the other cores when it joins. The library reads this
  // binding.
  const Before before(options, options.dedicated() ? computing_cores(options, allowed) : allowed);
  canele::engine engine = join(settings_for(options, driver, worker_core));
  canele::session session(engine, "canele-perf nbc");
  try {
    progress::Link link(engine, session);
    Collectives collectives(engine);
    run(link, collectives, options, before);
    session.barrier();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "canele-perf: %s\n", problem.what());
    engine.abort(1, problem.what());
  }
  return 0;
}

}  // namespace canele::perf::nbc
