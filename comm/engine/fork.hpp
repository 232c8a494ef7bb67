// SPDX-License-Identifier: BSD-3-Clause
//
// Fork handling: disables the copies of all engines in the child of a fork.
//
// The child has a copy of the engines' memory, but shares rings, sockets and descriptors with its parent. No call of
// the child may therefore continue with any of them.
//
// canele_init and canele_finalize register and unregister engines; comm/api checks `in_child` on its slow paths. Any
// thread may call these functions.
//
// This is the only global state of comm. The child's copy of an engine is given away (Engine::give_away). Its lock can
// never be taken again, and its number of ranks is a negative error code. Code that validates a rank finds that error
// anyway. So a post in the parent costs nothing extra, and a post in the child fails in the check for wrong ranks.
#pragma once

namespace canele::comm {

class Engine;

namespace fork {

/// True if this process is the child of a process that had an engine, or that had joined a launcher's job. Written by
/// the child's only thread, before fork() returns.
extern constinit bool in_child __attribute__((visibility("hidden")));

/// Announces an engine, before this process joins a job, and starts to detect forks. Returns false if there is no
/// memory, or if too many engines exist at once.
bool begin_life();
/// Registers the engine. `launched` means that a launcher knows this process as a rank, so no child can be one.
void enlist(Engine& engine, bool launched);
/// Ends what begin_life() began. `engine` is the engine about to be deleted, or nullptr if none was made.
void end_life(Engine* engine);

}  // namespace fork
}  // namespace canele::comm
