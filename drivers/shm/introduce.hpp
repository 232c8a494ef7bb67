// SPDX-License-Identifier: BSD-3-Clause
//
// How two processes of a host meet: the address, the unix socket, and what each gives the other over it.
//
// Who: the shm driver. Threads: no shared state. Makes system calls, never blocks.
// Surprise: the socket has an abstract name (no file: nothing is left after a kill -9), which any user of the host
//     can connect to. So the other end's user id is checked first, then the handshake of drivers/net, and only then
//     are descriptors passed.
//
//   connect ─▶ [handshake: Greeting as payload both ways] ─▶ [Introduction + 2 descriptors both ways] ─▶ up
//              the socket then stays open: a byte rings a sleeping peer, its end is the news that the peer has died or
//              left.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "drivers/driver.hpp"
#include "drivers/net/socket.hpp"
#include "drivers/shm/attach.hpp"

namespace canele::drivers::shm {

using Name = std::array<std::byte, 16>;

/// What open() publishes. Read by processes of the same host only, so plain memory is its wire format.
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
/// False if the bytes are no address of this driver.
bool unpack_address(std::span<const std::byte> bytes, AddressForm* form);

/// A listening socket with that name; empty and errno on failure.
net::UniqueFd listen_at(const Name& name);
/// A connected socket; empty and errno on failure (EAGAIN: the peer has too many waiting, try again).
net::UniqueFd connect_to(const Name& name);

/// Who is at the other end of a socket, by the kernel's word.
struct Credentials {
  pid_t pid = 0;  ///< 0: in a pid name space that we cannot see
  uid_t user = 0;
};
bool credentials_of(int socket, Credentials* out);

/// Payload of the handshake.
struct Greeting {
  std::uint32_t layout = 0;      ///< layout_version
  std::uint32_t membarrier = 0;  ///< 1: this process is registered for membarrier(GLOBAL_EXPEDITED)
  std::uint64_t nonce_address = 0;
  Nonce nonce = {};
};
static_assert(sizeof(Greeting) == 32);

/// After the handshake, with the descriptors of: the area to write to, the park page.
struct Introduction {
  static constexpr std::uint32_t expected_magic = 0x316d6873;  // "shm1"
  std::uint32_t magic = expected_magic;
  std::uint32_t reads_you = 0;  ///< 1: I have read your nonce in your memory
};

struct Lent {
  net::UniqueFd area, park;
};

enum class Transfer : std::uint8_t { ok, again, ended, no_descriptors, nonsense };

Transfer send_introduction(int socket, const Introduction& introduction, int area, int park);
/// ok: *lent owns the two descriptors.
Transfer receive_introduction(int socket, Introduction* introduction, Lent* lent);

/// Wakes the peer at the other end of the socket. Never blocks, whatever the peer has done to its end: it takes nothing
/// but the socket's own flag for this call. False if the connection cannot be used any more. Any thread.
bool ring(int socket);
/// Takes what has been rung; with `look_only` it stays. ended: errno says why, 0 for an orderly end.
enum class Rung : std::uint8_t { nothing, rings, nonsense, ended };
Rung take_rings(int socket, bool look_only);

/// A descriptor that becomes readable when the process ends; empty where the kernel has none.
net::UniqueFd watch_process(pid_t pid);

}  // namespace canele::drivers::shm
