// SPDX-License-Identifier: BSD-3-Clause
//
// Names for Clang's thread-safety annotations. Empty for other compilers, and without effect on the code.
//
// comm/state/under_lock.hpp gives them the engine's lock. tests/tidy checks them (rule `thread-safety`) by
// `clang++ -fsyntax-only -Wthread-safety`.
#pragma once

#ifdef __clang__
#define CANELE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define CANELE_THREAD_ATTRIBUTE(x)
#endif

// ---- classes
#define CANELE_CAPABILITY(name) CANELE_THREAD_ATTRIBUTE(capability(name))
#define CANELE_SCOPED_CAPABILITY CANELE_THREAD_ATTRIBUTE(scoped_lockable)
// ---- data
#define CANELE_GUARDED_BY(lock) CANELE_THREAD_ATTRIBUTE(guarded_by(lock))
#define CANELE_PT_GUARDED_BY(lock) CANELE_THREAD_ATTRIBUTE(pt_guarded_by(lock))
// ---- functions
#define CANELE_REQUIRES(lock) CANELE_THREAD_ATTRIBUTE(requires_capability(lock))
#define CANELE_ACQUIRE(lock) CANELE_THREAD_ATTRIBUTE(acquire_capability(lock))
#define CANELE_RELEASE(...) CANELE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define CANELE_TRY_ACQUIRE(result, lock) CANELE_THREAD_ATTRIBUTE(try_acquire_capability(result, lock))
#define CANELE_ASSERT_CAPABILITY(lock) CANELE_THREAD_ATTRIBUTE(assert_capability(lock))
#define CANELE_EXCLUDES(lock) CANELE_THREAD_ATTRIBUTE(locks_excluded(lock))
#define CANELE_NO_THREAD_SAFETY_ANALYSIS CANELE_THREAD_ATTRIBUTE(no_thread_safety_analysis)
