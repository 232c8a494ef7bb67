// SPDX-License-Identifier: BSD-3-Clause
//
// Server on top of libpmix's server API.
//
// All ranks are on this host, so libpmix itself completes fences and answers gets. The functions that would carry them
// to other hosts have little left to do.
#include "apps/run/server.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

#include "apps/run/pmix_info.hpp"

namespace canele::run {
namespace {

/// Turns a libpmix callback into a wait. Used for registrations only, which need no action of a rank.
class Done {
 public:
  static void call_back(pmix_status_t status, void* self) {
    auto* done = static_cast<Done*>(self);
    const std::lock_guard lock(done->mutex_);
    done->status_ = status;
    done->called_ = true;
    done->changed_.notify_one();  // under the lock: the waiter destroys this object as soon as it can take the lock
  }
  pmix_status_t wait(pmix_status_t started) {
    if (started == PMIX_OPERATION_SUCCEEDED) return PMIX_SUCCESS;
    if (started != PMIX_SUCCESS) return started;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return called_; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  pmix_status_t status_ = PMIX_SUCCESS;
  bool called_ = false;
};

void check(pmix_status_t status, const char* what) {
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
    throw std::runtime_error(fmt::format("the PMIx server failed: {}: {}", what, PMIx_Error_string(status)));
}

/// Returns the name of this host, cut off. PMIx_generate_regex of libpmix 4.2.2 writes past the end of its buffer for a
/// name of 57 characters or more. The ranks are all on this host, so any name that is equal for all of them will do.
std::string own_host() {
  constexpr std::size_t longest = 56;
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return std::string(name).substr(0, longest);
}

/// Checks that 127.0.0.1 works, where libpmix listens. libpmix's own message for this failure is not understandable.
void check_loopback() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  ifaddrs* interfaces = nullptr;
  bool up = getifaddrs(&interfaces) != 0;  // if it fails, the bind has to suffice as a proof
  for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next)
    up |= (one->ifa_flags & IFF_LOOPBACK) != 0 && (one->ifa_flags & IFF_UP) != 0 && one->ifa_addr != nullptr &&
          one->ifa_addr->sa_family == AF_INET;
  if (interfaces != nullptr) freeifaddrs(interfaces);
  if (fd >= 0) close(fd);
  if (!bound || !up)
    throw std::runtime_error(
        fmt::format("--pmix needs the loop-back address 127.0.0.1, which this host does not have "
                    "({}): leave --pmix out, or 'ip link set lo up'",
                    bound ? "the interface is down" : std::strerror(error)));
}

/// Checks the limit of open files. libpmix's own message for this failure is not understandable.
void check_descriptors(int ranks) {
  rlimit limit = {};
  const rlim_t needed = 48 + 3 * static_cast<rlim_t>(ranks);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < needed)
    throw std::runtime_error(
        fmt::format("--pmix needs about {} open files for {} ranks, and {} are allowed: leave "
                    "--pmix out, or raise the limit (ulimit -n)",
                    needed, ranks, limit.rlim_max));
}

/// Returns a name that is unique with great probability: ranks derive the job's identity from it.
std::string new_job_name() {
  std::random_device random;
  return fmt::format("canele-run.{}.{:08x}{:08x}", getpid(), random(), random());
}

/// Returns "0,1,2,...,n-1".
std::string rank_list(int ranks) {
  std::string list = "0";
  for (int rank = 1; rank < ranks; ++rank) list += fmt::format(",{}", rank);
  return list;
}

// The functions below run on libpmix's thread.

pmix_status_t fence(const pmix_proc_t*, size_t, const pmix_info_t*, size_t, char* data, size_t size,
                    pmix_modex_cbfunc_t done, void* context) {
  if (done != nullptr) done(PMIX_SUCCESS, data, size, context, std::free, data);
  return PMIX_SUCCESS;
}

pmix_status_t connect_ranks(const pmix_proc_t*, size_t, const pmix_info_t*, size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

/// Called only for ranks of other hosts: there are none.
pmix_status_t get_remote(const pmix_proc_t*, const pmix_info_t*, size_t, pmix_modex_cbfunc_t, void*) {
  return PMIX_ERR_NOT_FOUND;
}

pmix_status_t watch_events(pmix_status_t*, size_t, const pmix_info_t*, size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t unwatch_events(pmix_status_t*, size_t, pmix_op_cbfunc_t, void*) { return PMIX_OPERATION_SUCCEEDED; }

/// libpmix delivers events of ranks to the other ranks of this host without us.
pmix_status_t carry_event(pmix_status_t, const pmix_proc_t*, pmix_data_range_t, pmix_info_t*, size_t, pmix_op_cbfunc_t,
                          void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

}  // namespace

pmix_server_module_t* Server::module() {
  static pmix_server_module_t table = [] {
    pmix_server_module_t functions = {};
    functions.client_connected2 = on_joined;
    functions.client_finalized = on_finalized;
    functions.abort = on_abort;
    functions.fence_nb = fence;
    functions.direct_modex = get_remote;
    functions.connect = connect_ranks;
    functions.disconnect = connect_ranks;
    functions.register_events = watch_events;
    functions.deregister_events = unwatch_events;
    functions.notify_event = carry_event;
    return functions;
  }();
  return &table;
}

Server& Server::open(int ranks, const std::string& directory) {
  static Server* const only = new Server(ranks);
  only->start(directory);
  return *only;
}

Server::Server(int ranks) : ranks_(ranks), job_(new_job_name()), clients_(new Client[static_cast<std::size_t>(ranks)]) {
  assert(ranks > 0);
}

void Server::start(const std::string& directory) {
  check_loopback();
  check_descriptors(ranks_);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) throw std::runtime_error(fmt::format("eventfd: {}", std::strerror(errno)));
  // libpmix's shared-memory store of job data hangs its readers if one of them is killed while it holds the lock.
  // Requests to the server by socket do not.
  setenv("PMIX_MCA_gds", "hash", 0);
  InfoList info;
  info.add(PMIX_SERVER_TMPDIR, directory);
  info.add(PMIX_SYSTEM_TMPDIR, directory);
  check(PMIx_server_init(module(), info.data(), info.size()), "start");
  register_job(own_host(), directory);
  register_ranks();
}

void Server::register_job(const std::string& host, const std::string& directory) {
  const auto count = static_cast<std::uint32_t>(ranks_);
  const std::string list = rank_list(ranks_);
  char* nodes = nullptr;
  char* placement = nullptr;
  check(PMIx_generate_regex(host.c_str(), &nodes), "list of hosts");
  check(PMIx_generate_ppn(list.c_str(), &placement), "placement of ranks");
  InfoList info;
  info.add(PMIX_NODE_MAP, nodes, PMIX_REGEX);
  info.add(PMIX_PROC_MAP, placement, PMIX_REGEX);
  std::free(nodes);
  std::free(placement);
  for (const char* key : {PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_LOCAL_SIZE, PMIX_NODE_SIZE, PMIX_MAX_PROCS})
    info.add(key, count);
  info.add(PMIX_NUM_NODES, std::uint32_t{1});
  info.add(PMIX_JOB_NUM_APPS, std::uint32_t{1});
  info.add(PMIX_LOCALLDR, pmix_rank_t{0}, PMIX_PROC_RANK);
  info.add(PMIX_LOCAL_PEERS, list);
  info.add(PMIX_JOBID, job_);
  info.add(PMIX_HOSTNAME, host);
  info.add(PMIX_TMPDIR, directory);
  info.add(PMIX_NSDIR, directory);
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    InfoList one;
    one.add(PMIX_RANK, pmix_rank_t{rank}, PMIX_PROC_RANK);
    one.add(PMIX_GLOBAL_RANK, pmix_rank_t{rank}, PMIX_PROC_RANK);
    one.add(PMIX_APP_RANK, pmix_rank_t{rank}, PMIX_PROC_RANK);
    one.add(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(rank));
    one.add(PMIX_NODE_RANK, static_cast<std::uint16_t>(rank));
    one.add(PMIX_APPNUM, std::uint32_t{0});
    one.add(PMIX_NODEID, std::uint32_t{0});
    one.add(PMIX_HOSTNAME, host);
    info.add(PMIX_PROC_INFO_ARRAY, std::move(one));
  }
  Done done;
  check(done.wait(PMIx_server_register_nspace(job_.c_str(), ranks_, info.data(), info.size(), Done::call_back, &done)),
        "register the job");
}

void Server::register_ranks() {
  for (int rank = 0; rank < ranks_; ++rank) {
    Client& client = clients_[static_cast<std::size_t>(rank)];
    client.server = this;
    client.rank = rank;
    pmix_proc_t name;
    PMIX_LOAD_PROCID(&name, job_.c_str(), static_cast<pmix_rank_t>(rank));
    Done done;
    check(done.wait(PMIx_server_register_client(&name, getuid(), getgid(), &client, Done::call_back, &done)),
          "register a rank");
  }
}

std::vector<std::string> Server::environment(int rank, const std::vector<std::string>& base) {
  pmix_proc_t name;
  PMIX_LOAD_PROCID(&name, job_.c_str(), static_cast<pmix_rank_t>(rank));
  char** added = nullptr;
  check(PMIx_server_setup_fork(&name, &added), "environment of a rank");
  std::vector<std::string> all = base;
  for (char** entry = added; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
    std::free(*entry);
  }
  std::free(added);
  return all;
}

void Server::wake() {
  const std::uint64_t one = 1;
  // Fails only if the counter is full: then the loop is awake anyway.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

void Server::clear_wake() {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t got = read(wake_fd_, &count, sizeof count);
}

std::optional<AbortCall> Server::take_abort() {
  const std::lock_guard lock(mutex_);
  return std::exchange(abort_, std::nullopt);
}

void Server::report_death(int rank, int exit_code) {
  pmix_proc_t name;
  PMIX_LOAD_PROCID(&name, job_.c_str(), static_cast<pmix_rank_t>(rank));
  InfoList info;
  info.add(PMIX_EVENT_AFFECTED_PROC, name);
  info.add(PMIX_EXIT_CODE, std::int32_t{exit_code});
  info.add(PMIX_EVENT_NON_DEFAULT, true);  // a default handler (Open MPI's) would end the survivor
  Done done;
  done.wait(PMIx_Notify_event(PMIX_ERR_PROC_ABORTED, &name, PMIX_RANGE_LOCAL, info.data(), info.size(), Done::call_back,
                              &done));
}

// Runs on libpmix's thread.

pmix_status_t Server::on_joined(const pmix_proc_t*, void* client, pmix_info_t*, size_t, pmix_op_cbfunc_t, void*) {
  auto* self = static_cast<Client*>(client);
  self->joined = true;
  self->server->anyone_joined_ = true;
  self->server->wake();
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t Server::on_finalized(const pmix_proc_t*, void* client, pmix_op_cbfunc_t, void*) {
  static_cast<Client*>(client)->finalized = true;
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t Server::on_abort(const pmix_proc_t*, void* client, int code, const char* reason, pmix_proc_t*, size_t,
                               pmix_op_cbfunc_t, void*) {
  auto* self = static_cast<Client*>(client);
  {
    const std::lock_guard lock(self->server->mutex_);
    if (!self->server->abort_)
      self->server->abort_ = AbortCall{self->rank, code, reason == nullptr ? std::string() : std::string(reason)};
  }
  self->server->wake();
  return PMIX_OPERATION_SUCCEEDED;
}

}  // namespace canele::run
