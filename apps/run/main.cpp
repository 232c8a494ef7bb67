// SPDX-License-Identifier: BSD-3-Clause
//
// canele-run: starts a program as the ranks of one job on this host. README.md describes the parts.
//
// Threads: the main thread runs the job. Each tagged output stream has a thread of its own, and so has libpmix under
// --pmix.
//
// The order of the steps below matters. First open descriptors 0 to 2. Then block signals (before any thread). Then
// start the guard (before any thread). Then start the server.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "apps/run/job.hpp"
#include "apps/run/message.hpp"
#include "apps/run/pmi1_server.hpp"
#ifdef CANELE_HAVE_PMIX
#include "apps/run/server.hpp"
#endif

namespace canele::run {
namespace {

/// Opens descriptors 0 to 2. If one of them were closed, one of our pipes would get its number.
void open_standard_descriptors() {
  int fd;
  while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= 2) continue;
  if (fd > 2) close(fd);
}

/// The private directory of the job, removed at its end.
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
    if (rmdir(path_.c_str()) == 0) return;  // needs no descriptor: none may be left
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr int time_for_messages = 500;  ///< ms, for a slow reader of our standard error

int fail(int code, const std::string& why) {
  say(why);
  return code;
}

/// Prints the help or the version. It is no failure if the reader takes only a part of it (head).
int answer(const std::string& text) {
  const int error = print(1, text);
  return error == 0 || error == EPIPE ? 0 : fail(1, fmt::format("standard output: {}", std::strerror(error)));
}

RankServer& open_pmix([[maybe_unused]] int ranks, [[maybe_unused]] const std::string& directory) {
#ifdef CANELE_HAVE_PMIX
  return Server::open(ranks, directory);
#else
  throw std::invalid_argument("--pmix: this canele-run was built without libpmix (Debian: libpmix-dev)");
#endif
}

int run(const Options& options) {
  std::string why;
  if (!options.directory.empty() && !std::filesystem::is_directory(options.directory))
    return fail(exit_usage, fmt::format("--wdir {}: there is no such directory", options.directory));
  int code = 0;
  const std::string program = find_program(options.command.front(), options.directory, &why, &code);
  if (program.empty()) return fail(code, why);
  for (const std::string& warning : options.warnings) say(warning);
  const Signals signals;
  const auto directory = std::make_unique<PrivateDirectory>();
  const auto guard = std::make_unique<Guard>(directory->path());
  std::unique_ptr<Pmi1Server> pmi1;
  if (!options.pmix) pmi1 = std::make_unique<Pmi1Server>(options.ranks);
  RankServer& server = options.pmix ? open_pmix(options.ranks, directory->path()) : *pmi1;
  return Job(options, signals, *guard, server).run(program);
}

int run_or_answer(const std::vector<std::string>& arguments) {
  try {
    const Parsed parsed = parse_options(arguments);
    if (parsed.run) return run(parsed.options);
    return parsed.code == 0 ? answer(parsed.text) : fail(parsed.code, parsed.text);
  } catch (const std::invalid_argument& error) {
    return fail(exit_usage, error.what());
  } catch (const std::exception& error) {
    return fail(exit_not_executable, error.what());
  }
}

}  // namespace
}  // namespace canele::run

int main(int count, char** words) {
  using namespace canele::run;
  open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // write() reports a closed reader; ranks start with the default action again
  const int code = run_or_answer({words + 1, words + count});
  finish_messages(time_for_messages);
  _exit(code);  // not by return: libpmix's thread may still run, see Server::open
}
