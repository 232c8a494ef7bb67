// SPDX-License-Identifier: BSD-3-Clause
//
// Error handlers, and the one that an object has.
#include "starpu_glue/mpi/core/error_handlers.hpp"

#include <mutex>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/handles.hpp"

namespace canele::mpi {
namespace {

struct ErrorHandler {
  ObjectKind kind = ObjectKind::communicator;
  AnyFunction function = nullptr;
  int uses = 0;  ///< objects, and the handles that the program has not freed
};

constexpr std::uint32_t kHandlersReserved = 0x144;  ///< up to MPI_ERRORS_RETURN
constinit HandlePool<ErrorHandler, MPI_Errhandler, Kind::error_handler, kHandlersReserved, 64> error_handlers_pool;
constinit std::mutex error_handlers_lock;

bool is_predefined(MPI_Errhandler handler) {
  return handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_ABORT || handler == MPI_ERRORS_RETURN;
}

/// Adds a use of a handler, if it is one of the program. Under the lock.
void add_use(MPI_Errhandler handler) {
  if (ErrorHandler* const found = error_handlers_pool.find(handler)) ++found->uses;
}

/// Drops a use of a handler, if it is one of the program. Under the lock.
void drop_use_of(MPI_Errhandler handler) {
  ErrorHandler* const found = error_handlers_pool.find(handler);
  if (found != nullptr && --found->uses == 0) error_handlers_pool.release(handler);
}

}  // namespace

int add_error_handler(ObjectKind kind, AnyFunction function, MPI_Errhandler* handler) {
  if (function == nullptr) return given({{"function", nullptr}});
  const std::lock_guard guard(error_handlers_lock);
  MPI_Errhandler made = MPI_ERRHANDLER_NULL;
  ErrorHandler* const slot = error_handlers_pool.acquire(&made);
  if (slot == nullptr) return fail(MPI_ERR_NO_MEM, "no memory or no handle left for another error handler");
  *slot = {kind, function, 1};
  *handler = made;
  return MPI_SUCCESS;
}

int free_error_handler(MPI_Errhandler* handler) {
  const std::lock_guard guard(error_handlers_lock);
  if (!is_predefined(*handler) && error_handlers_pool.find(*handler) == nullptr)
    return fail(MPI_ERR_ARG, "0x%zx is not an error handler, or was freed", handle_bits(*handler));
  drop_use_of(*handler);
  *handler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

bool call_error_handler(const ErrorTarget& target, int code) {
  ErrorHandler copy;
  {
    const std::lock_guard guard(error_handlers_lock);
    const ErrorHandler* const found = error_handlers_pool.find(target.handler);
    if (found == nullptr) return false;
    copy = *found;
  }
  if (copy.kind == ObjectKind::session) {
    auto handle = static_cast<MPI_Session>(target.object);
    restore<ErrorFunction<MPI_Session>>(copy.function)(&handle, &code);
  } else if (copy.kind == ObjectKind::window) {
    auto handle = static_cast<MPI_Win>(target.object);
    restore<ErrorFunction<MPI_Win>>(copy.function)(&handle, &code);
  } else {
    auto handle = static_cast<MPI_Comm>(target.object);
    restore<ErrorFunction<MPI_Comm>>(copy.function)(&handle, &code);
  }
  return true;
}

ErrorHandlerUse::~ErrorHandlerUse() {
  if (is_predefined(get())) return;
  const std::lock_guard guard(error_handlers_lock);
  drop_use_of(get());
}

int ErrorHandlerUse::set(ObjectKind kind, MPI_Errhandler handler) {
  const std::lock_guard guard(error_handlers_lock);
  const ErrorHandler* const made = error_handlers_pool.find(handler);
  if (!is_predefined(handler) && (made == nullptr || made->kind != kind))
    return fail(MPI_ERR_ARG,
                "0x%zx is not an error handler; expected: one of MPI_%s_create_errhandler, MPI_ERRORS_ARE_FATAL, "
                "MPI_ERRORS_ABORT or MPI_ERRORS_RETURN",
                handle_bits(handler), name_of(kind));
  add_use(handler);
  drop_use_of(handler_.exchange(handler, std::memory_order_relaxed));
  return MPI_SUCCESS;
}

void ErrorHandlerUse::inherit(const ErrorHandlerUse& other) {
  const std::lock_guard guard(error_handlers_lock);
  const MPI_Errhandler handler = other.get();
  add_use(handler);
  drop_use_of(handler_.exchange(handler, std::memory_order_relaxed));
}

MPI_Errhandler ErrorHandlerUse::share() const {
  const std::lock_guard guard(error_handlers_lock);
  add_use(get());
  return get();
}

}  // namespace canele::mpi
