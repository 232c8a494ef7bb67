// SPDX-License-Identifier: BSD-3-Clause
//
// Knocking, waiting, connecting. See meeting.hpp. A letter, 72 bytes:
//
//     0 u32 magic   4 u16 version   6 u16 type   8 u16 why   10 zero   12 i32 from   16 i32 to   20 zero
//    24 u64 job   32 u64 incarnation   40 u64 endpoint   48 the sender's door, 16 bytes   64 u64 proof
//
// The proof covers the receiver's door, whose name is drawn anew at every start. A letter to an earlier process thus
// proves nothing to a later one.
#include "drivers/psm2/meeting.hpp"

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
constexpr std::uint32_t letter_magic = 0x726f6f44;  // "Door"
constexpr int moment_ms = 1;
constexpr int letters_at_once = 64;
constexpr std::size_t most_fds = 3;  ///< descriptors in a letter.
constexpr int stay_rounds = 20;      ///< rounds that a committed side stays before it looks again in the next poll().
constexpr std::uint32_t longest_wait = 1024;  ///< polls between two invitations of a guest that does not come.

net::AbstractName socket_name(const DoorName& door) { return {"canele-psm2-", door}; }

net::UniqueFd watch_process(std::int32_t pid) {
  return net::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool readable(int fd) {
  pollfd look = {fd, POLLIN, 0};
  return ::poll(&look, 1, 0) == 1;
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

bool Meeting::open(std::string* reason) {
  for (std::size_t i = 0; i < 8; ++i) door_[i] = static_cast<std::byte>(context_.random() >> 24);
  // Two processes may draw equal numbers, but not with one process id.
  net::write_le(door_.data() + 8, static_cast<std::uint32_t>(::getpid()), 4);
  net::write_le(door_.data() + 12, self_.incarnation, 4);
  const net::AbstractName name = socket_name(door_);
  const int on = 1;
  own_ledger_.hang(net::UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)));
  if (bell() < 0 || !Ledger::make(&ledger_) || !own_ledger_.map(ledger_.get())) {
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

void Meeting::close() {
  seekers_.clear();
  guests_.clear();
  socket_.reset();
  ledger_.reset();
  own_ledger_ = Ledger();
}

void Meeting::seek(Rank rank, const Whereabouts& where) {
  for (Guest& guest : guests_) {
    if (guest.rank == rank) {  // the peer is faster
      guest.wanted = true;
      return;
    }
  }
  seekers_.push_back({rank, where, {}, {}, {}, false, false, nullptr});
}

bool Meeting::seeks(Rank rank) const {
  return std::any_of(seekers_.begin(), seekers_.end(), [rank](const Seeker& seeker) { return seeker.rank == rank; });
}

void Meeting::drop(Rank rank) {
  seekers_.remove_if([rank](const Seeker& seeker) { return seeker.rank == rank; });
}

bool Meeting::step(Sink& sink) {
  bool moved = read_letters(sink);
  for (auto at = seekers_.begin(); at != seekers_.end();) {
    const Progress progress = advance(*at, sink);
    moved |= progress != Progress::none;
    at = progress == Progress::over ? seekers_.erase(at) : std::next(at);
  }
  for (auto at = guests_.begin(); at != guests_.end();) {
    const Progress progress = advance(*at, sink);
    moved |= progress != Progress::none;
    at = progress == Progress::over ? guests_.erase(at) : std::next(at);
  }
  return moved;
}

// Letters.

std::uint64_t Meeting::proof(const std::byte* frame, const DoorName& to) const {
  std::array<std::byte, 16 + proof_offset + sizeof(DoorName)> text;
  std::memcpy(text.data(), "canele psm2 door", 16);
  std::copy_n(frame, proof_offset, text.begin() + 16);
  std::copy(to.begin(), to.end(), text.begin() + 16 + proof_offset);
  return net::siphash24(self_.secret, text);
}

/// Sends a letter. False and errno on failure.
bool Meeting::send(const DoorName& to, Type type, Rank rank, Why why, std::span<const int> fds) {
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
    std::copy(door_.begin(), door_.end(), frame.begin() + 48);
    net::write_le(frame.data() + proof_offset, proof(frame.data(), to), 8);
  } else {
    std::copy(door_.begin(), door_.end(), frame.begin() + 48);
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
bool Meeting::receive(Letter* letter) {
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
  std::copy_n(frame.begin() + 48, read.door.size(), read.door.begin());
  read.proven = net::read_le64(frame.data() + proof_offset) == proof(frame.data(), door_);
  return true;
}

bool Meeting::read_letters(Sink& sink) {
  int read = 0;
  for (; read < letters_at_once; ++read) {
    Letter letter;
    if (!receive(&letter)) break;
    const Frame& frame = letter.frame;
    if (frame.type == Type::knock && frame.from != -1) {
      on_knock(letter, sink);
    } else if (frame.type == Type::refusal) {
      on_refusal(letter, sink);
    } else if (frame.type == Type::ledger && frame.proven) {
      for (Seeker& seeker : seekers_) {
        if (seeker.rank == frame.from && !seeker.ledger) open_ledger(letter, &seeker.ledger);
      }
    } else if (frame.type == Type::claim && frame.proven) {
      for (Guest& guest : guests_) guest.claimed |= guest.rank == frame.from;
    } else {
      ++refused_;
    }
  }
  return read > 0;
}

Meeting::Why Meeting::judge(const Frame& frame, const Sink& sink) const {
  if (!frame.proven) return Why::secret;
  if (frame.job != self_.job || frame.to != self_.rank || frame.from < 0 || frame.from >= self_.size ||
      frame.from == self_.rank) {
    return Why::stranger;
  }
  const auto same = [&frame](const Guest& guest) { return guest.rank == frame.from; };
  if (sink.knows(frame.from) || std::any_of(guests_.begin(), guests_.end(), same)) return Why::known;
  return guests_.size() < most_guests ? Why::none : Why::stranger;
}

/// Maps the ledger of a letter. Returns false if the letter does not bring what it must.
bool Meeting::open_ledger(Letter& letter, Ledger* ledger) {
  if (!is_eventfd(letter.fds[1].get()) || !ledger->map(letter.fds[0].get())) return false;
  ledger->hang(std::move(letter.fds[1]));
  return true;
}

void Meeting::on_knock(Letter& letter, Sink& sink) {
  const Frame& frame = letter.frame;
  Ledger ledger;
  const bool fits = is_eventfd(letter.fds[2].get()) && open_ledger(letter, &ledger);
  const Why why = fits || !frame.proven ? judge(frame, sink) : Why::stranger;
  if (why != Why::none) {
    ++refused_;
    context_.log(2, "process " + std::to_string(letter.pid) + " asked to connect and was rejected");
    send(frame.door, Type::refusal, frame.from, why);
    return;
  }
  const bool wanted = seeks(frame.from);
  if (wanted) {
    // This end's attempt continues; the other end drops its own when it reads this end's knock.
    if (self_.rank < frame.from) return;
    drop(frame.from);
  }
  guests_.push_back({frame.from, frame.endpoint, frame.incarnation, letter.pid, std::move(letter.fds[2]),
                     watch_process(letter.pid), std::move(ledger), frame.door, false, false, wanted, 0, 0});
}

void Meeting::on_refusal(const Letter& letter, Sink& sink) {
  const Frame& frame = letter.frame;
  for (auto at = seekers_.begin(); at != seekers_.end(); ++at) {
    if (at->where.door != frame.door || at->where.pid != letter.pid || !at->sent || at->claimed) continue;
    // A peer with another secret cannot prove its refusal.
    if (frame.why != Why::secret && !frame.proven) continue;
    // `known`: the other end has this rank as a guest, or knows it. The connection continues that way.
    const std::string text = frame.why == Why::secret ? "the job's secret differs: the peer belongs to another job"
                             : frame.why == Why::known
                                 ? "there is a connection between the two ranks already, or was"
                                 : "the ranks or jobs differ from the expected ones: a stale address?";
    const Rank rank = at->rank;
    seekers_.erase(at);
    if (frame.why != Why::known || !sink.knows(rank)) {
      sink.missed(rank, false, "the peer refused the connection: " + text);
    }
    return;
  }
  ++refused_;
}

// The seeker.

Meeting::Progress Meeting::advance(Seeker& seeker, Sink& sink) {
  if (!seeker.sent) return knock(seeker, sink);
  if (seeker.address == nullptr) {
    // The ledger comes before the token.
    if (!seeker.claimed && (!seeker.ledger || !take(seeker.token))) {
      if (!readable(seeker.process.get())) return Progress::none;
      sink.missed(seeker.rank, true, "the peer died before it answered");
      return Progress::over;
    }
    if (!seeker.claimed) send(seeker.where.door, Type::claim, seeker.rank, Why::none);
    seeker.claimed = true;
    const psm2_error_t error = endpoint_.connect(seeker.where.endpoint, &seeker.address);
    if (error != PSM2_OK) {
      seeker.address = nullptr;
      // The peer may be stopped at the moment: it has promised to connect, so it will.
      if (error == PSM2_TIMEOUT && !readable(seeker.process.get())) return Progress::some;
      sink.missed(seeker.rank, true, std::string("psm2_ep_connect: ") + psm2_error_get_string(error));
      return Progress::over;
    }
  }
  return finish(seeker, sink);
}

Meeting::Progress Meeting::knock(Seeker& seeker, Sink& sink) {
  if (!seeker.token) {
    seeker.token = net::UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    seeker.process = watch_process(seeker.where.pid);
    if (!seeker.token || !seeker.process) {
      const bool dead = seeker.token && errno == ESRCH;
      sink.missed(seeker.rank, dead, dead ? "the peer's process has ended" : net::error_text(errno));
      return Progress::over;
    }
  }
  const int fds[] = {ledger_.get(), bell(), seeker.token.get()};
  if (send(seeker.where.door, Type::knock, seeker.rank, Why::none, fds)) {
    seeker.sent = true;
    return Progress::some;
  }
  // Many peers knock there; try again later.
  if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) return Progress::none;
  sink.missed(seeker.rank, true, "the peer's control socket is gone: " + net::error_text(errno));
  return Progress::over;
}

/// Waits for the peer after this end has connected. The peer now connects to this end, which must be inside libpsm2 for
/// that.
Meeting::Progress Meeting::finish(Seeker& seeker, Sink& sink) {
  for (int round = 0; round < stay_rounds; ++round) {
    endpoint_.progress();
    if (take(seeker.token)) {
      sink.met({seeker.rank, true, true, seeker.address, seeker.where.pid, std::move(seeker.process),
                seeker.where.incarnation, std::move(seeker.ledger)});
      return Progress::over;
    }
    if (readable(seeker.process.get())) {
      sink.missed(seeker.rank, true, "the peer died while it connected");
      return Progress::over;
    }
    if (round > 0) wait_a_moment(seeker.token.get(), seeker.process.get());
  }
  return Progress::some;
}

// The host.

Meeting::Progress Meeting::advance(Guest& guest, Sink& sink) {
  if (readable(guest.process.get())) return lose(guest, sink);
  if (!guest.told) {
    const int fds[] = {ledger_.get(), bell()};
    guest.told = send(guest.door, Type::ledger, guest.rank, Why::none, fds);
    if (!guest.told) return Progress::none;
  }
  if (!guest.claimed) {
    if (guest.wait > 0) return --guest.wait, Progress::none;
    if (!invite(guest, sink)) return Progress::none;
  }
  return welcome(guest, sink);
}

/// Stays for a moment. Returns true if the guest has come: this end must then continue.
bool Meeting::invite(Guest& guest, Sink& sink) {
  give(guest.token);
  wait_a_moment(socket_.get(), guest.process.get());
  read_letters(sink);  // adds guests at the end, and removes none
  endpoint_.progress();
  if (!guest.claimed && endpoint_.find(guest.endpoint) == nullptr && take(guest.token)) {
    // The guest is busy elsewhere. The more often that happens, the less often it is invited.
    guest.wait = std::min(longest_wait, 1u << std::min(guest.offers++, 10u));
    return false;
  }
  guest.claimed = true;
  return true;
}

Meeting::Progress Meeting::welcome(Guest& guest, Sink& sink) {
  for (int round = 0; round < stay_rounds; ++round) {
    endpoint_.progress();
    if (endpoint_.find(guest.endpoint) == nullptr) {
      if (readable(guest.process.get())) return lose(guest, sink);
      if (round > 0) wait_a_moment(socket_.get(), guest.process.get());
      continue;
    }
    psm2_epaddr_t address = nullptr;
    // The peer is stopped; try again at the next poll().
    if (endpoint_.connect(guest.endpoint, &address) != PSM2_OK) break;
    give(guest.token);
    sink.met({guest.rank, false, guest.wanted, address, guest.pid, std::move(guest.process), guest.incarnation,
              std::move(guest.ledger)});
    return Progress::over;
  }
  return readable(guest.process.get()) ? lose(guest, sink) : Progress::some;
}

Meeting::Progress Meeting::lose(const Guest& guest, Sink& sink) {
  if (guest.wanted) sink.missed(guest.rank, true, "the peer died while it connected");
  return Progress::over;
}

/// Lets other processes run until one of the two is readable, a millisecond at most.
bool Meeting::wait_a_moment(int fd, int other) const {
  pollfd look[2] = {{fd, POLLIN, 0}, {other, POLLIN, 0}};
  return ::poll(look, 2, moment_ms) > 0;
}

}  // namespace canele::drivers::psm2
