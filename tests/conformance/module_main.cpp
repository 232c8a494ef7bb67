// SPDX-License-Identifier: BSD-3-Clause
//
// conformance_module: runs the kit on a driver that was built elsewhere, as a module (CANELE_DRIVER_MODULE).
//
// For authors of drivers; ctest runs it on a module of the test's own. The module is opened here, but its driver only
// in the children.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/conformance/kit.hpp"

namespace {

constexpr char usage[] =
    "usage: conformance_module MODULE.so [option...] [gtest options]\n"
    "  --set=NAME=VALUE      setting CANELE_NAME of the driver\n"
    "  --env=NAME=VALUE      environment variable for the fabric's library\n"
    "  --skip=TEST=REASON    a test that this driver cannot pass\n"
    "  --slow                a tenth of the messages, 8 processes instead of 32\n"
    "  --no-secret           it does not reject a peer without the job's secret\n"
    "  --leaves-files        its library leaves files in /dev/shm after kill -9\n"
    "  --keeps-descriptors   its library keeps descriptors after close()\n"
    "  --parts-survivors     a rank that is killed while it sends may cost survivors their connections\n";

int wrong(const std::string& what) {
  std::fprintf(stderr, "conformance_module: %s\n%s", what.c_str(), usage);
  return 2;
}

/// Puts "NAME=VALUE" into the map. Returns false if there is no "=".
bool put(std::map<std::string, std::string>* map, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  (*map)[text.substr(0, equals)] = text.substr(equals + 1);
  return true;
}

/// Parses one option. Returns false if `text` is no option, or a wrong one.
bool parse(const std::string& text, canele::conformance::Options* options) {
  if (text.starts_with("--gtest")) return true;
  if (text.starts_with("--set=")) return put(&options->settings, text.substr(6));
  if (text.starts_with("--env=")) return put(&options->environment, text.substr(6));
  if (text.starts_with("--skip=")) return put(&options->skips, text.substr(7));
  if (text == "--slow") return options->slow = true;
  if (text == "--leaves-files") return options->leaves_files = true;
  if (text == "--keeps-descriptors") return options->keeps_descriptors = true;
  if (text == "--parts-survivors") return options->parts_survivors = true;
  if (text == "--no-secret") return !(options->authenticates = false);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  using canele::drivers::DriverFactory;
  if (argc < 2 || argv[1][0] == '-') return wrong("the first argument is the module's file");
  canele::conformance::Options options;
  for (int i = 2; i < argc; ++i) {
    if (!parse(argv[i], &options)) return wrong("\"" + std::string(argv[i]) + "\" is no option");
  }
  void* const module = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return wrong(::dlerror());
  const auto get = reinterpret_cast<const DriverFactory* (*)()>(::dlsym(module, "canele_driver_module"));
  if (get == nullptr) return wrong(std::string(argv[1]) + " has no canele_driver_module(): use CANELE_DRIVER_MODULE");
  const DriverFactory* const factory = get();
  if (factory->contract != canele::drivers::contract_version) {
    return wrong(std::string(argv[1]) + " was built for version " + std::to_string(factory->contract) +
                 " of the contract; this is version " + std::to_string(canele::drivers::contract_version));
  }
  canele::conformance::add_driver("module_" + std::string(factory->name), *factory, options);
  return canele::conformance::run(argc, argv);
}
