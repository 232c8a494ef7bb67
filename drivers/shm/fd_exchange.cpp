// SPDX-License-Identifier: BSD-3-Clause
//
// Unix sockets with abstract names, credentials, descriptors in messages. See fd_exchange.hpp.
//
// Every received descriptor is owned at once, before any check, so that a hostile peer cannot cause a descriptor leak.
#include "drivers/shm/fd_exchange.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "drivers/net/abstract_name.hpp"

namespace canele::drivers::shm {
namespace {

constexpr int lent_count = 2;
constexpr char ring_byte = 1;

net::AbstractName socket_name(const Name& name) { return {"canele-", name}; }

net::UniqueFd make_socket() { return net::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

Transfer after_error() { return errno == EAGAIN || errno == EINTR ? Transfer::again : Transfer::ended; }

}  // namespace

AddressForm own_address(DriverContext& context) {
  AddressForm form;
  form.user = ::geteuid();
  form.host = net::host_id();
  form.incarnation = context.incarnation;
  for (std::size_t i = 0; i < form.name.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t bits = context.random();
    std::memcpy(form.name.data() + i, &bits, sizeof bits);
  }
  return form;
}

Address pack_address(const AddressForm& form) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&form);
  return Address(bytes, bytes + sizeof form);
}

bool unpack_address(std::span<const std::byte> bytes, AddressForm* form) {
  if (bytes.size() != sizeof *form) return false;
  std::memcpy(form, bytes.data(), sizeof *form);
  return std::memcmp(form->magic, AddressForm().magic, sizeof form->magic) == 0;
}

net::UniqueFd listen_at(const Name& name) {
  net::UniqueFd made = make_socket();
  const net::AbstractName where = socket_name(name);
  if (made && (::bind(made.get(), where.address(), where.size()) != 0 || ::listen(made.get(), SOMAXCONN) != 0))
    made.reset();
  return made;
}

net::UniqueFd connect_to(const Name& name) {
  net::UniqueFd made = make_socket();
  const net::AbstractName where = socket_name(name);
  if (made && ::connect(made.get(), where.address(), where.size()) != 0) made.reset();
  return made;
}

bool credentials_of(int socket, Credentials* out) {
  ucred found = {};
  socklen_t size = sizeof found;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return false;
  *out = {found.pid, found.uid};
  return true;
}

Transfer send_fds(int socket, const FdMessage& fd_message, int channel, int sleep_page) {
  FdMessage copy = fd_message;
  iovec piece{&copy, sizeof copy};
  alignas(cmsghdr) char control[CMSG_SPACE(lent_count * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(lent_count * sizeof(int));
  const int fds[lent_count] = {channel, sleep_page};
  std::memcpy(CMSG_DATA(head), fds, sizeof fds);
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return after_error();
  // A unix socket takes eight bytes whole or not at all.
  return sent == sizeof copy ? Transfer::ok : Transfer::malformed;
}

Transfer receive_fds(int socket, FdMessage* fd_message, Lent* lent) {
  iovec piece{fd_message, sizeof *fd_message};
  alignas(cmsghdr) char control[CMSG_SPACE(lent_count * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return after_error();
  if (got == 0) return Transfer::ended;

  net::UniqueFd fds[lent_count];
  int count = 0;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t used = CMSG_LEN(0); used + sizeof(int) <= head->cmsg_len; used += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<char*>(head) + used, sizeof fd);
      net::UniqueFd owned(fd);
      if (count < lent_count) fds[count] = std::move(owned);
      ++count;
    }
  }
  // The kernel delivers fewer descriptors when this process has no more room for them.
  if ((message.msg_flags & MSG_CTRUNC) != 0 && count < lent_count) return Transfer::no_descriptors;
  if (got != sizeof *fd_message || (message.msg_flags & MSG_CTRUNC) != 0 || count != lent_count ||
      fd_message->magic != FdMessage::expected_magic) {
    return Transfer::malformed;
  }
  *lent = {std::move(fds[0]), std::move(fds[1])};
  return Transfer::ok;
}

bool ring(int socket) {
  for (;;) {
    if (::send(socket, &ring_byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) return true;
    if (errno == EINTR) continue;
    return errno == EAGAIN;  // the socket is full: the pending rings wake the peer as well
  }
}

Rung take_rings(int socket, bool peek_only) {
  char bytes[64];
  const ssize_t got = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT | (peek_only ? MSG_PEEK : 0));
  if (got == 0) errno = 0;
  if (got <= 0) return errno == EAGAIN || errno == EINTR ? Rung::nothing : Rung::ended;
  for (ssize_t i = 0; i < got; ++i) {
    if (bytes[i] != ring_byte) return Rung::malformed;
  }
  return Rung::rings;
}

net::UniqueFd watch_process(pid_t pid) {
  if (pid <= 0) return {};
  // By number: glibc has a wrapper since 2.36 only. The kernel makes the descriptor close-on-exec.
  return net::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace canele::drivers::shm
