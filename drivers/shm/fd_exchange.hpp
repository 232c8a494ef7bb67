// SPDX-License-Identifier: BSD-3-Clause
//
// How two processes of a host connect: the address, the unix socket, and the descriptors that each sends over it.
//
// Used by the shm driver. No shared state, so any thread may call. The functions make system calls and never block.
//
//   connect ─▶ [handshake: HandshakePayload as payload both ways] ─▶ [FdMessage + 2 descriptors both ways] ─▶ up
//              The socket then stays open: a byte rings a sleeping peer; its end means that the peer has died or left.
//
// The socket has an abstract name, to which any user of the host can connect. (It is no file: a kill -9 leaves nothing
// behind.) Therefore the other end's user id is checked first, then the handshake of drivers/net runs, and only then
// are descriptors passed.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "drivers/driver.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/shm/cma.hpp"

namespace canele::drivers::shm {

using Name = std::array<std::byte, 16>;

/// What open() publishes. Only processes of the same host read it, so plain memory is its wire format.
struct AddressForm {
  char magic[4] = {'s', 'h', 'm', '1'};
  std::uint32_t user = 0;  ///< effective user id
  std::uint64_t host = 0;  ///< boot and network name space: abstract sockets do not reach across either
  std::uint64_t incarnation = 0;
  Name name = {};  ///< of the listening socket
};
static_assert(sizeof(AddressForm) == 40);

AddressForm own_address(DriverContext& context);
Address pack_address(const AddressForm& form);
/// Parses an address. Returns false if the bytes are no address of this driver.
bool unpack_address(std::span<const std::byte> bytes, AddressForm* form);

/// Returns a listening socket with that name; empty and errno on failure.
net::UniqueFd listen_at(const Name& name);
/// Returns a connected socket; empty and errno on failure (EAGAIN: the peer's backlog is full, try again).
net::UniqueFd connect_to(const Name& name);

/// The process at the other end of a socket, as the kernel reports it.
struct Credentials {
  pid_t pid = 0;  ///< 0: in a pid name space that is not visible here
  uid_t user = 0;
};
bool credentials_of(int socket, Credentials* out);

/// Payload of the handshake.
struct HandshakePayload {
  std::uint32_t layout = 0;      ///< layout_version
  std::uint32_t membarrier = 0;  ///< 1: this process is registered for membarrier(GLOBAL_EXPEDITED)
  std::uint64_t nonce_address = 0;
  Nonce nonce = {};
};
static_assert(sizeof(HandshakePayload) == 32);

/// Sent after the handshake, with two descriptors: the channel to write to, and the sleep page.
struct FdMessage {
  static constexpr std::uint32_t expected_magic = 0x316d6873;  // "shm1"
  std::uint32_t magic = expected_magic;
  std::uint32_t reads_you = 0;  ///< 1: the sender has read the receiver's nonce in the receiver's memory
};

struct Lent {
  net::UniqueFd channel, sleep_page;
};

enum class Transfer : std::uint8_t { ok, again, ended, no_descriptors, malformed };

Transfer send_fds(int socket, const FdMessage& fd_message, int channel, int sleep_page);
/// Receives descriptors. ok: *lent owns the two descriptors.
Transfer receive_fds(int socket, FdMessage* fd_message, Lent* lent);

/// Wakes the peer at the other end of the socket. Never blocks, whatever the peer has done to its end: the call depends
/// only on its own flag MSG_DONTWAIT. Returns false if the connection cannot be used any more. Any thread.
bool ring(int socket);
/// Consumes pending rings; with `peek_only` they stay. ended: errno says why, 0 for an orderly end.
enum class Rung : std::uint8_t { nothing, rings, malformed, ended };
Rung take_rings(int socket, bool peek_only);

/// Returns a descriptor that becomes readable when the process ends; empty where the kernel has none.
net::UniqueFd watch_process(pid_t pid);

}  // namespace canele::drivers::shm
