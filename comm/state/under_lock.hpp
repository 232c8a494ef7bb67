// SPDX-License-Identifier: BSD-3-Clause
//
// The engine's lock as Clang's thread-safety analysis sees it: one role, "the lock of the engine at hand".
//
//   field     int x CANELE_LOCKED;            only the holder of the lock uses x
//             X* x CANELE_CONTENT_LOCKED;     any thread reads x, only the holder uses *x
//   function  void f() CANELE_UNDER_LOCK;     only the holder of the lock calls f()
//
// The functions of Engine that take and release the lock say so to the analysis. All others inherit what their caller
// has. A lambda is a function of its own, so it is marked, too.
//
// The role has no object. An engine has many names (context, *request.context, engine_of(context), *this), and the
// analysis compares names only. A program with several engines is therefore checked as if they shared one lock.
#pragma once

#include "ltask/thread_safety.hpp"

namespace canele::comm {

/// The role. It has no objects.
class CANELE_CAPABILITY("engine lock") EngineLock {};
/// Its name. Declared only, because nothing uses its value.
extern const EngineLock engine_lock;

#define CANELE_LOCKED CANELE_GUARDED_BY(::canele::comm::engine_lock)
#define CANELE_CONTENT_LOCKED CANELE_PT_GUARDED_BY(::canele::comm::engine_lock)
#define CANELE_UNDER_LOCK CANELE_REQUIRES(::canele::comm::engine_lock)
#define CANELE_TAKES_LOCK CANELE_ACQUIRE(::canele::comm::engine_lock)
#define CANELE_TRIES_LOCK CANELE_TRY_ACQUIRE(true, ::canele::comm::engine_lock)
#define CANELE_LEAVES_LOCK CANELE_RELEASE(::canele::comm::engine_lock)
#define CANELE_NOT_UNDER_LOCK CANELE_EXCLUDES(::canele::comm::engine_lock)

/// Tells the analysis that the caller has the lock, where it cannot see that. Does nothing. Each call says why it is
/// true.
inline void assume_lock() CANELE_ASSERT_CAPABILITY(engine_lock) {}
/// Tells the analysis that ltask::SubmitLock has given the lock to the caller. Does nothing, so its body is not
/// analysed.
inline void note_lock_taken() CANELE_TAKES_LOCK CANELE_NO_THREAD_SAFETY_ANALYSIS {}
/// Tells the analysis that the caller has given the lock back. Does nothing, so its body is not analysed.
inline void note_lock_left() CANELE_LEAVES_LOCK CANELE_NO_THREAD_SAFETY_ANALYSIS {}

}  // namespace canele::comm
