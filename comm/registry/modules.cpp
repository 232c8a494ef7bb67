// SPDX-License-Identifier: BSD-3-Clause
//
// Finds and opens driver modules.
//
// The default directory is relative to the library, not to the configured prefix, so that an installation can be moved.
#include "comm/registry/modules.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "comm/config/names.hpp"
#include "comm/config/nearest.hpp"
#include "comm/registry/registry.hpp"

namespace canele::comm {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view file_start = "canele-driver-", file_end = ".so";

/// Returns the file that holds this code: libcanele, or a program that it is linked into.
fs::path own_file() {
  static const char here = 0;
  Dl_info info{};
  return dladdr(&here, &info) != 0 && info.dli_fname != nullptr ? fs::path(info.dli_fname) : fs::path();
}

std::vector<fs::path> directories(std::string_view path) {
  std::vector<fs::path> all;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    if (end > 0) all.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  all.push_back(own_file().parent_path() / "canele");
  return all;
}

std::string text_of(const std::vector<fs::path>& all) {
  std::string text;
  for (const fs::path& one : all) text += (text.empty() ? "" : ", ") + one.string();
  return text;
}

/// Restores the process's signal handlers on destruction. The constructors of some fabrics' libraries install handlers;
/// that of libpsm2 for SIGTERM calls exit.
class SignalsAsTheyWere {
 public:
  SignalsAsTheyWere() {
    for (int i = 0; i < count; ++i) known_[i] = sigaction(i + 1, nullptr, &before_[i]) == 0;
  }
  ~SignalsAsTheyWere() {
    for (int i = 0; i < count; ++i) {
      if (known_[i]) sigaction(i + 1, &before_[i], nullptr);
    }
  }
  SignalsAsTheyWere(const SignalsAsTheyWere&) = delete;
  SignalsAsTheyWere& operator=(const SignalsAsTheyWere&) = delete;

 private:
  static constexpr int count = 31;  // the classic signals; libraries do not touch the others
  struct sigaction before_[count];
  bool known_[count];
};

Module open_file(std::string name, const fs::path& file) {
  Module module{std::move(name), file.string(), "", nullptr};
  void* handle;
  {
    const SignalsAsTheyWere guard;
    handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    const char* const why = dlerror();
    module.problem = std::string("it cannot be loaded: ") + (why != nullptr ? why : "no reason given");
    return module;
  }
  using Find = const drivers::DriverFactory* (*)();
  const auto find = reinterpret_cast<Find>(dlsym(handle, "canele_driver_module"));
  if (find == nullptr) {
    module.problem = module.file + " has no function canele_driver_module (CANELE_DRIVER_MODULE makes one)";
    return module;
  }
  const drivers::DriverFactory* const factory = find();
  if (factory->contract != drivers::contract_version) {
    module.problem = module.file + " was built for version " + std::to_string(factory->contract) +
                     " of the driver contract; expected: " + std::to_string(drivers::contract_version);
  } else if (factory->name != module.name) {
    module.problem = module.file + " holds a driver called " + std::string(factory->name);
  } else {
    module.factory = factory;
  }
  return module;
}

/// Explains why a module was not found.
std::string absent(std::string_view name, const std::vector<fs::path>& searched) {
  std::string why =
      "there is no " + std::string(file_start) + std::string(name) + std::string(file_end) + " in " + text_of(searched);
  for (const ModuleName& known : known_modules) {
    if (known.name == name) why += "; it is built where " + std::string(known.library) + " is found";
  }
  return why;
}

std::string no_such_driver(std::string_view name, const std::string& problem) {
  std::vector<std::string_view> names;
  for (const auto* factory : all_drivers()) names.push_back(factory->name);
  for (const ModuleName& known : known_modules) names.push_back(known.name);
  const std::string_view nearest = nearest_name(name, names);
  std::string why = "CANELE_DRIVERS names " + std::string(name) + ": " + problem;
  if (!nearest.empty() && nearest != name) why += " (did you mean " + std::string(nearest) + "?)";
  return why + "; canele-info lists the drivers";
}

}  // namespace

Module open_module(std::string_view name, std::string_view path) {
  const std::vector<fs::path> all = directories(path);
  for (const fs::path& directory : all) {
    const fs::path file = directory / (std::string(file_start) + std::string(name) + std::string(file_end));
    std::error_code none;
    if (fs::exists(file, none)) return open_file(std::string(name), file);
  }
  return {std::string(name), "", absent(name, all), nullptr};
}

std::vector<Module> open_modules(std::string_view path) {
  std::vector<Module> found;
  for (const fs::path& directory : directories(path)) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(directory, none)) {
      const std::string file = entry.path().filename().string();
      if (!file.starts_with(file_start) || !file.ends_with(file_end)) continue;
      const std::string name = file.substr(file_start.size(), file.size() - file_start.size() - file_end.size());
      const auto same = [&](const Module& one) { return one.name == name; };
      if (std::none_of(found.begin(), found.end(), same)) found.push_back(open_file(name, entry.path()));
    }
  }
  return found;
}

bool choose_drivers(std::string_view list, std::string_view path, std::vector<DriverChoice>* chosen, std::string* why) {
  chosen->emplace_back(find_driver("self"));
  bool joined = false;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(",+"), list.size());
    const std::string_view word = list.substr(0, end);
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::string_view name = word.substr(0, colon);
    if (name != "self") {
      DriverChoice choice(find_driver(name));
      if (choice.factory == nullptr) {
        const Module module = open_module(name, path);
        choice.factory = module.factory;
        if (choice.factory == nullptr) {
          *why = no_such_driver(name, module.problem);
          return false;
        }
      }
      choice.argument = word.substr(std::min(colon + 1, word.size()));
      choice.with_previous = joined;
      chosen->push_back(std::move(choice));
    }
    joined = end < list.size() && list[end] == '+' && name != "self";
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return true;
}

}  // namespace canele::comm
