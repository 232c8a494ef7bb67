// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of engines in the child of a fork: it has a copy of their memory, and shares their rings, sockets and
// descriptors with its parent, so no call of the child may go on with any of them.
//
// Who: canele_init and canele_finalize enlist and strike off; comm/api asks on its slow paths.
// Threads: any.
// Surprise: this is the one global of comm. The child's copy of an engine is given away (Engine::give_away): nobody
// ever
//     gets its lock again, and its number of ranks is a negative error, which what checks a rank finds anyway. So a
//     post of the parent pays nothing, and one of the child ends where wrong ranks do.
#pragma once

namespace canele::comm {

class Engine;

namespace fork {

/// This process is the child of one that had an engine, or had joined the job of a launcher. Written by the child's
/// only thread, before fork() returns.
extern constinit bool in_child __attribute__((visibility("hidden")));

/// Before a process joins a job: from now on forks are noticed. False: no memory, or too many engines at a time.
bool begin_life();
/// The engine that it has become; launched: a launcher knows this process as a rank, so no child can be one.
void enlist(Engine& engine, bool launched);
/// The engine, before it is deleted, or nullptr: it was never made.
void end_life(Engine* engine);

}  // namespace fork
}  // namespace canele::comm
