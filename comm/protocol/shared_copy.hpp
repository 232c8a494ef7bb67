// SPDX-License-Identifier: BSD-3-Clause
//
// Shared copies: both ends of a large message copy chunks of it, whichever has time; who ends the last one tells the
// other.
//
// Who: advert, send_path, receive_path, rendezvous.
// Threads: under the engine's lock; the copying task runs outside it.
// Surprise: a request may be over before the task of its own end is: the task names it by handle and touches its memory
//     only while it holds a claim, for until that is given back the transfer is not over.
#pragma once

#include <span>

#include "comm/protocol/rendezvous.hpp"

namespace canele::comm::shared_copy {

/// What is not longer is copied at once.
inline constexpr std::uint64_t least_chunk = 128 * 1024;

/// Receiver: the message of an offered receive is announced.
void receive(Engine& engine, Request& request, Peer& peer, Claims claims, std::span<const std::byte> exposure);
/// Sender: the message for a receive that this end has taken is being announced. The copy begins when somebody makes
/// progress: posting a send does not wait for it.
void send(Engine& engine, Request& request, Peer& peer, Claims claims, const Adverts::Theirs& offered);

/// Sends that were announced, for whoever makes progress now.
void start_deferred(Engine& engine);

/// The task of this end has nothing left to copy.
void over(Engine& engine, rendezvous::Pull& copy);

/// The sender has ended the last chunk.
const char* on_placed(Engine& engine, Peer& peer, std::uint64_t key);

}  // namespace canele::comm::shared_copy
