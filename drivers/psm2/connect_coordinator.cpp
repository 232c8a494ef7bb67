// SPDX-License-Identifier: BSD-3-Clause
//
// Requesting, waiting, connecting. See connect_coordinator.hpp. A letter, 72 bytes:
//
//     0 u32 magic   4 u16 version   6 u16 type   8 u16 why   10 zero   12 i32 from   16 i32 to   20 zero
//    24 u64 job   32 u64 incarnation   40 u64 endpoint   48 the sender's control socket, 16 bytes   64 u64 proof
//
// The proof covers the receiver's control socket, whose name is drawn anew at every start. A letter to an earlier
// process thus proves nothing to a later one.
#include "drivers/psm2/connect_coordinator.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "drivers/net/abstract_name.hpp"
#include "drivers/net/bytes.hpp"
#include "drivers/net/siphash.hpp"

namespace canele::drivers::psm2 {
namespace {

constexpr std::size_t letter_size = 72, proof_offset = 64;
constexpr std::uint32_t letter_magic = 0x726f6f44;
constexpr int moment_ms = 1;
constexpr int letters_at_once = 64;
constexpr std::size_t most_fds = 3;  ///< descriptors in a letter.
constexpr int stay_rounds = 20;      ///< rounds that a committed side stays before it looks again in the next poll().
constexpr std::uint32_t longest_wait = 1024;  ///< polls between two invitations of a peer that does not come.

net::AbstractName socket_name(const ControlName& name) { return {"canele-psm2-", name}; }

net::UniqueFd watch_process(std::int32_t pid) {
  return net::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool readable(int fd) {
  pollfd one = {fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

void give(const net::UniqueFd& token) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(token.get(), &one, sizeof one);
}
bool take(const net::UniqueFd& token) {
  std::uint64_t value = 0;
  return ::read(token.get(), &value, sizeof value) == sizeof value;
}

/// Returns true if a peer's descriptor is a non-blocking eventfd; using any other could block.
bool is_eventfd(int fd) {
  char target[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (::readlink(link.c_str(), target, sizeof target - 1) <= 0) return false;
  return std::string_view(target) == "anon_inode:[eventfd]" && (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

}  // namespace

bool ConnectCoordinator::open(std::string* reason) {
  for (std::size_t i = 0; i < 8; ++i) control_[i] = static_cast<std::byte>(context_.random() >> 24);
  // Two processes may draw equal numbers, but not with one process id.
  net::write_le(control_.data() + 8, static_cast<std::uint32_t>(::getpid()), 4);
  net::write_le(control_.data() + 12, self_.incarnation, 4);
  const net::AbstractName name = socket_name(control_);
  const int on = 1;
  own_lease_page_.hang(net::UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)));
  if (bell() < 0 || !SenderLeasePage::make(&lease_page_memfd_) || !own_lease_page_.map(lease_page_memfd_.get())) {
    *reason = "cannot make a page to share: " + net::error_text(errno);
    return false;
  }
  socket_ = net::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_ || ::setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::bind(socket_.get(), name.address(), name.size()) != 0) {
    *reason = "cannot make the control socket: " + net::error_text(errno);
    return false;
  }
  return true;
}

void ConnectCoordinator::close() {
  outbound_.clear();
  inbound_.clear();
  socket_.reset();
  lease_page_memfd_.reset();
  own_lease_page_ = SenderLeasePage();
}

void ConnectCoordinator::connect(Rank rank, const Whereabouts& where) {
  for (Inbound& inbound : inbound_) {
    if (inbound.rank == rank) {  // the peer is faster
      inbound.wanted = true;
      return;
    }
  }
  outbound_.push_back({rank, where, {}, {}, {}, false, false, nullptr});
}

bool ConnectCoordinator::is_connecting(Rank rank) const {
  return std::any_of(outbound_.begin(), outbound_.end(),
                     [rank](const Outbound& outbound) { return outbound.rank == rank; });
}

void ConnectCoordinator::drop(Rank rank) {
  outbound_.remove_if([rank](const Outbound& outbound) { return outbound.rank == rank; });
}

bool ConnectCoordinator::step(Sink& sink) {
  bool moved = read_letters(sink);
  for (auto at = outbound_.begin(); at != outbound_.end();) {
    const Progress progress = advance(*at, sink);
    moved |= progress != Progress::none;
    at = progress == Progress::complete ? outbound_.erase(at) : std::next(at);
  }
  for (auto at = inbound_.begin(); at != inbound_.end();) {
    const Progress progress = advance(*at, sink);
    moved |= progress != Progress::none;
    at = progress == Progress::complete ? inbound_.erase(at) : std::next(at);
  }
  return moved;
}

// Letters.

std::uint64_t ConnectCoordinator::proof(const std::byte* frame, const ControlName& to) const {
  std::array<std::byte, 16 + proof_offset + sizeof(ControlName)> text;
  std::memcpy(text.data(), "canele psm2 door", 16);
  std::copy_n(frame, proof_offset, text.begin() + 16);
  std::copy(to.begin(), to.end(), text.begin() + 16 + proof_offset);
  return net::siphash24(self_.secret, text);
}

/// Sends a letter. False and errno on failure.
bool ConnectCoordinator::send(const ControlName& to, Type type, Rank rank, Why why, std::span<const int> fds) {
  std::array<std::byte, letter_size> frame = {};
  net::write_le(frame.data(), letter_magic, 4);
  net::write_le(frame.data() + 4, format_version, 2);
  net::write_le(frame.data() + 6, static_cast<std::uint16_t>(type), 2);
  net::write_le(frame.data() + 8, static_cast<std::uint16_t>(why), 2);
  if (why != Why::secret) {  // a peer without the secret gets no information and no signature
    net::write_le(frame.data() + 12, static_cast<std::uint32_t>(self_.rank), 4);
    net::write_le(frame.data() + 16, static_cast<std::uint32_t>(rank), 4);
    net::write_le(frame.data() + 24, self_.job, 8);
    net::write_le(frame.data() + 32, self_.incarnation, 8);
    net::write_le(frame.data() + 40, endpoint_.id(), 8);
    net::write_le(frame.data() + proof_offset, 0, 8);
    std::copy(control_.begin(), control_.end(), frame.begin() + 48);
    net::write_le(frame.data() + proof_offset, proof(frame.data(), to), 8);
  } else {
    std::copy(control_.begin(), control_.end(), frame.begin() + 48);
  }
  const net::AbstractName name = socket_name(to);
  iovec piece = {frame.data(), frame.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(most_fds * sizeof(int))] = {};
  msghdr message = {const_cast<sockaddr*>(name.address()), name.size(), &piece, 1, nullptr, 0, 0};
  if (!fds.empty()) {
    assert(fds.size() <= most_fds);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(frame.size());
}

/// Receives one letter; false if there is none. A datagram that is no letter, or of another user's process, comes out
/// with rank -1.
bool ConnectCoordinator::receive(Letter* letter) {
  std::array<std::byte, letter_size + 1> frame;
  iovec piece = {frame.data(), frame.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(4 * sizeof(int))];
  msghdr message = {nullptr, 0, &piece, 1, control, sizeof control, 0};
  const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return false;
  bool ours = false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred sender;
      std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
      ours = sender.uid == ::geteuid();
      letter->pid = sender.pid;
    } else if (header->cmsg_type == SCM_RIGHTS) {
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        letter->fds[std::min(i, most_fds - 1)].reset(fd);  // of more, the last stays, the others are closed
      }
    }
  }
  Frame& read = letter->frame;
  if (!ours || size != static_cast<ssize_t>(letter_size) || net::read_le32(frame.data()) != letter_magic ||
      net::read_le16(frame.data() + 4) != format_version) {
    return true;
  }
  read.type = static_cast<Type>(net::read_le16(frame.data() + 6));
  read.why = static_cast<Why>(net::read_le16(frame.data() + 8));
  read.from = static_cast<Rank>(net::read_le32(frame.data() + 12));
  read.to = static_cast<Rank>(net::read_le32(frame.data() + 16));
  read.job = net::read_le64(frame.data() + 24);
  read.incarnation = net::read_le64(frame.data() + 32);
  read.endpoint = net::read_le64(frame.data() + 40);
  std::copy_n(frame.begin() + 48, read.control.size(), read.control.begin());
  read.proven = net::read_le64(frame.data() + proof_offset) == proof(frame.data(), control_);
  return true;
}

bool ConnectCoordinator::read_letters(Sink& sink) {
  int read = 0;
  for (; read < letters_at_once; ++read) {
    Letter letter;
    if (!receive(&letter)) break;
    const Frame& frame = letter.frame;
    if (frame.type == Type::request && frame.from != -1) {
      on_request(letter, sink);
    } else if (frame.type == Type::rejection) {
      on_rejection(letter, sink);
    } else if (frame.type == Type::lease_page && frame.proven) {
      for (Outbound& outbound : outbound_) {
        if (outbound.rank == frame.from && !outbound.lease_page) open_lease_page(letter, &outbound.lease_page);
      }
    } else if (frame.type == Type::claim && frame.proven) {
      for (Inbound& inbound : inbound_) inbound.claimed |= inbound.rank == frame.from;
    } else {
      ++rejected_;
    }
  }
  return read > 0;
}

ConnectCoordinator::Why ConnectCoordinator::judge(const Frame& frame, const Sink& sink) const {
  if (!frame.proven) return Why::secret;
  if (frame.job != self_.job || frame.to != self_.rank || frame.from < 0 || frame.from >= self_.size ||
      frame.from == self_.rank) {
    return Why::mismatch;
  }
  const auto same = [&frame](const Inbound& inbound) { return inbound.rank == frame.from; };
  if (sink.knows(frame.from) || std::any_of(inbound_.begin(), inbound_.end(), same)) return Why::known;
  return inbound_.size() < most_inbound ? Why::none : Why::mismatch;
}

/// Maps the lease page of a letter. Returns false if the letter does not bring what it must.
bool ConnectCoordinator::open_lease_page(Letter& letter, SenderLeasePage* lease_page) {
  if (!is_eventfd(letter.fds[1].get()) || !lease_page->map(letter.fds[0].get())) return false;
  lease_page->hang(std::move(letter.fds[1]));
  return true;
}

void ConnectCoordinator::on_request(Letter& letter, Sink& sink) {
  const Frame& frame = letter.frame;
  SenderLeasePage lease_page;
  const bool fits = is_eventfd(letter.fds[2].get()) && open_lease_page(letter, &lease_page);
  const Why why = fits || !frame.proven ? judge(frame, sink) : Why::mismatch;
  if (why != Why::none) {
    ++rejected_;
    context_.log(2, "process " + std::to_string(letter.pid) + " asked to connect and was rejected");
    send(frame.control, Type::rejection, frame.from, why);
    return;
  }
  const bool wanted = is_connecting(frame.from);
  if (wanted) {
    // This end's attempt continues; the other end drops its own when it reads this end's request.
    if (self_.rank < frame.from) return;
    drop(frame.from);
  }
  inbound_.push_back({frame.from, frame.endpoint, frame.incarnation, letter.pid, std::move(letter.fds[2]),
                      watch_process(letter.pid), std::move(lease_page), frame.control, false, false, wanted, 0, 0});
}

void ConnectCoordinator::on_rejection(const Letter& letter, Sink& sink) {
  const Frame& frame = letter.frame;
  for (auto at = outbound_.begin(); at != outbound_.end(); ++at) {
    if (at->where.control != frame.control || at->where.pid != letter.pid || !at->sent || at->claimed) continue;
    // A peer with another secret cannot prove its rejection.
    if (frame.why != Why::secret && !frame.proven) continue;
    // `known`: the other end has an inbound attempt of this rank, or knows it. The connection continues that way.
    const std::string text = frame.why == Why::secret ? "the job's secret differs: the peer belongs to another job"
                             : frame.why == Why::known
                                 ? "there is a connection between the two ranks already, or was"
                                 : "the ranks or jobs differ from the expected ones: a stale address?";
    const Rank rank = at->rank;
    outbound_.erase(at);
    if (frame.why != Why::known || !sink.knows(rank)) {
      sink.missed(rank, false, "the peer rejected the connection: " + text);
    }
    return;
  }
  ++rejected_;
}

// The outbound side.

ConnectCoordinator::Progress ConnectCoordinator::advance(Outbound& outbound, Sink& sink) {
  if (!outbound.sent) return request(outbound, sink);
  if (outbound.address == nullptr) {
    // The lease page comes before the token.
    if (!outbound.claimed && (!outbound.lease_page || !take(outbound.token))) {
      if (!readable(outbound.process.get())) return Progress::none;
      sink.missed(outbound.rank, true, "the peer died before it answered");
      return Progress::complete;
    }
    if (!outbound.claimed) send(outbound.where.control, Type::claim, outbound.rank, Why::none);
    outbound.claimed = true;
    const psm2_error_t error = endpoint_.connect(outbound.where.endpoint, &outbound.address);
    if (error != PSM2_OK) {
      outbound.address = nullptr;
      // The peer may be stopped at the moment: it has promised to connect, so it will.
      if (error == PSM2_TIMEOUT && !readable(outbound.process.get())) return Progress::some;
      sink.missed(outbound.rank, true, std::string("psm2_ep_connect: ") + psm2_error_get_string(error));
      return Progress::complete;
    }
  }
  return finish(outbound, sink);
}

ConnectCoordinator::Progress ConnectCoordinator::request(Outbound& outbound, Sink& sink) {
  if (!outbound.token) {
    outbound.token = net::UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    outbound.process = watch_process(outbound.where.pid);
    if (!outbound.token || !outbound.process) {
      const bool dead = outbound.token && errno == ESRCH;
      sink.missed(outbound.rank, dead, dead ? "the peer's process has ended" : net::error_text(errno));
      return Progress::complete;
    }
  }
  const int fds[] = {lease_page_memfd_.get(), bell(), outbound.token.get()};
  if (send(outbound.where.control, Type::request, outbound.rank, Why::none, fds)) {
    outbound.sent = true;
    return Progress::some;
  }
  // Many peers connect there; try again later.
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return Progress::none;
  sink.missed(outbound.rank, true, "the peer's control socket is gone: " + net::error_text(errno));
  return Progress::complete;
}

/// Waits for the peer after this end has connected. The peer now connects to this end, which must be inside libpsm2 for
/// that.
ConnectCoordinator::Progress ConnectCoordinator::finish(Outbound& outbound, Sink& sink) {
  for (int round = 0; round < stay_rounds; ++round) {
    endpoint_.progress();
    if (take(outbound.token)) {
      sink.reached({outbound.rank, true, true, outbound.address, outbound.where.pid, std::move(outbound.process),
                    outbound.where.incarnation, std::move(outbound.lease_page)});
      return Progress::complete;
    }
    if (readable(outbound.process.get())) {
      sink.missed(outbound.rank, true, "the peer died while it connected");
      return Progress::complete;
    }
    if (round > 0) wait_a_moment(outbound.token.get(), outbound.process.get());
  }
  return Progress::some;
}

// The inbound side.

ConnectCoordinator::Progress ConnectCoordinator::advance(Inbound& inbound, Sink& sink) {
  if (readable(inbound.process.get())) return lose(inbound, sink);
  if (!inbound.told) {
    const int fds[] = {lease_page_memfd_.get(), bell()};
    inbound.told = send(inbound.control, Type::lease_page, inbound.rank, Why::none, fds);
    if (!inbound.told) return Progress::none;
  }
  if (!inbound.claimed) {
    if (inbound.wait > 0) return --inbound.wait, Progress::none;
    if (!invite(inbound, sink)) return Progress::none;
  }
  return welcome(inbound, sink);
}

/// Stays for a moment. Returns true if the peer has come: this end must then continue.
bool ConnectCoordinator::invite(Inbound& inbound, Sink& sink) {
  give(inbound.token);
  wait_a_moment(socket_.get(), inbound.process.get());
  read_letters(sink);  // adds inbound peers at the end, and removes none
  endpoint_.progress();
  if (!inbound.claimed && endpoint_.find(inbound.endpoint) == nullptr && take(inbound.token)) {
    // The peer is busy elsewhere. The more often that happens, the less often it is invited.
    inbound.wait = std::min(longest_wait, 1u << std::min(inbound.offers++, 10u));
    return false;
  }
  inbound.claimed = true;
  return true;
}

ConnectCoordinator::Progress ConnectCoordinator::welcome(Inbound& inbound, Sink& sink) {
  for (int round = 0; round < stay_rounds; ++round) {
    endpoint_.progress();
    if (endpoint_.find(inbound.endpoint) == nullptr) {
      if (readable(inbound.process.get())) return lose(inbound, sink);
      if (round > 0) wait_a_moment(socket_.get(), inbound.process.get());
      continue;
    }
    psm2_epaddr_t address = nullptr;
    // The peer is stopped; try again at the next poll().
    if (endpoint_.connect(inbound.endpoint, &address) != PSM2_OK) break;
    give(inbound.token);
    sink.reached({inbound.rank, false, inbound.wanted, address, inbound.pid, std::move(inbound.process),
                  inbound.incarnation, std::move(inbound.lease_page)});
    return Progress::complete;
  }
  return readable(inbound.process.get()) ? lose(inbound, sink) : Progress::some;
}

ConnectCoordinator::Progress ConnectCoordinator::lose(const Inbound& inbound, Sink& sink) {
  if (inbound.wanted) sink.missed(inbound.rank, true, "the peer died while it connected");
  return Progress::complete;
}

/// Lets other processes run until one of the two is readable, a millisecond at most.
bool ConnectCoordinator::wait_a_moment(int fd, int other) const {
  pollfd both[2] = {{fd, POLLIN, 0}, {other, POLLIN, 0}};
  return ::poll(both, 2, moment_ms) > 0;
}

}  // namespace canele::drivers::psm2
