// SPDX-License-Identifier: BSD-3-Clause
//
// canele-run: starts a program as the ranks of one job on this host. README.md tells who does what.
//
// Threads: the main thread runs the job; libpmix and each tagged output stream have one of their own.
// Surprise: the order below matters: descriptors 0 to 2 exist, then the guard (before any thread), then signals are
//      blocked (before any thread), then the server.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "apps/run/job.hpp"
#include "apps/run/pmi1_server.hpp"
#include "apps/run/server.hpp"

namespace canele::run {
namespace {

/// With stdin, stdout or stderr closed, a pipe of ours would take its number.
void open_standard_descriptors() {
  int fd;
  while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= 2) continue;
  if (fd > 2) close(fd);
}

/// A directory of the job's own, gone when the job is.
class PrivateDirectory {
 public:
  PrivateDirectory() {
    const char* place = std::getenv("TMPDIR");
    path_ = fmt::format("{}/canele-run.XXXXXX", place == nullptr || *place == '\0' ? "/tmp" : place);
    if (mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error(
          fmt::format("cannot make a directory '{}': {} (TMPDIR can name another place)", path_, std::strerror(errno)));
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int fail(int code, const std::string& why) {
  fmt::print(stderr, "canele-run: {}\n", why);
  return code;
}

int run(const Options& options) {
  std::string why;
  if (!options.directory.empty() && !std::filesystem::is_directory(options.directory))
    return fail(exit_usage, fmt::format("--wdir {}: there is no such directory", options.directory));
  int code = 0;
  const std::string program = find_program(options.command.front(), options.directory, &why, &code);
  if (program.empty()) return fail(code, why);
  open_standard_descriptors();
  const Signals signals;
  auto directory = std::make_unique<PrivateDirectory>();
  auto guard = std::make_unique<Guard>(directory->path());
  std::unique_ptr<Pmi1Server> pmi1;
  if (options.pmi1) pmi1 = std::make_unique<Pmi1Server>(options.ranks);
  RankServer* server = pmi1.get();
  if (server == nullptr) server = &Server::open(options.ranks, directory->path());
  code = Job(options, signals, *guard, *server).run(program);
  // Not by return: libpmix's thread still runs, see Server::open.
  guard.reset();
  directory.reset();
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace
}  // namespace canele::run

int main(int count, char** words) {
  using namespace canele::run;
  try {
    const Parsed parsed = parse_options({words + 1, words + count});
    if (!parsed.run) {
      fmt::print(parsed.code == 0 ? stdout : stderr, "{}", parsed.text);
      return parsed.code;
    }
    return run(parsed.options);
  } catch (const std::invalid_argument& error) {
    return fail(exit_usage, error.what());
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}
