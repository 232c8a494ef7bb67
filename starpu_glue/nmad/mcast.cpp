// SPDX-License-Identifier: BSD-3-Clause
//
// nm_mcast_: StarPU's cooperative sends on the engine's multicasts. For StarPU 1.4 and later.
//
// Called from any thread; the notifier runs on whatever thread sees the end. The service is the communicator itself:
// nothing is created, and no other rank is informed.
#include <nm_mcast_interface.h>

#include <vector>

#include "starpu_glue/mpi/core/error.hpp"
#include "starpu_glue/mpi/core/state.hpp"
#include "starpu_glue/nmad/internal.hpp"

using namespace canele;
using nmad::Multicast;

namespace canele::nmad {
namespace {

Multicast& multicast_of(nm_mcast_t* memory) { return *static_cast<Multicast*>(memory->impl_); }

/// Calls StarPU, which destroys the multicast.
void notify_multicast(SerialTask& task) {
  const Multicast& multicast = static_cast<const Multicast&>(task);
  const mpi::CallbackScope scope;
  multicast.notifier(multicast.reference);
}

void on_end(canele_request_t* request, unsigned, void* argument) {
  auto& multicast = *static_cast<Multicast*>(argument);
  canele_status_t status{};
  canele_request_status(request, &status);
  if (status.error != CANELE_OK) {
    mpi::fatal("a StarPU multicast (tag %llu, %zu bytes) failed: %s", static_cast<unsigned long long>(status.tag),
               status.length, canele_error_string(status.error));
  }
  if (multicast.notifier == nullptr) return;
  multicast.run = notify_multicast;
  multicast.session->sends.deliver(multicast);
}

int shape_of(nm_coll_tree_kind_t tree) {
  switch (tree) {
    case NM_COLL_TREE_FLAT:
      return CANELE_SHAPE_FLAT;
    case NM_COLL_TREE_CHAIN:
      return CANELE_SHAPE_CHAIN;
    case NM_COLL_TREE_BINOMIAL:
      return CANELE_SHAPE_BINOMIAL;
    case NM_COLL_TREE_DEFAULT:
      break;
  }
  return CANELE_SHAPE_AUTO;
}

}  // namespace
}  // namespace canele::nmad

extern "C" nm_mcast_service_t nm_mcast_init(nm_comm_t comm) { return reinterpret_cast<nm_mcast_service_t>(comm); }

extern "C" void nm_mcast_finalize(nm_mcast_service_t) {}

extern "C" void nm_mcast_send_init(nm_mcast_service_t, nm_mcast_t* memory) { memory->impl_ = new Multicast{}; }

extern "C" void nm_mcast_send_set_notifier(nm_mcast_t* memory, nm_mcast_send_notifier_t notifier, void* reference) {
  Multicast& multicast = nmad::multicast_of(memory);
  multicast.notifier = notifier;
  multicast.reference = reference;
}

extern "C" void nm_mcast_isend(nm_mcast_t* memory, nm_comm_t comm, const int* destinations, const int* priorities,
                               int count, nm_tag_t tag, const nm_data_s* data, nm_len_t header,
                               nm_coll_tree_kind_t tree) {
  auto& communicator = *reinterpret_cast<mpi::Communicator*>(comm);
  Multicast& multicast = nmad::multicast_of(memory);
  multicast.session = nmad::session_of(communicator);
  std::vector<int> ranks;
  for (int i = 0; i < count; ++i) {
    if (destinations[i] < 0 || destinations[i] >= communicator.size()) {
      mpi::fatal("nm_mcast_isend: rank %d is not in the communicator, which has the ranks 0 to %d", destinations[i],
                 communicator.size() - 1);
    }
    ranks.push_back(communicator.world_rank(destinations[i]));
  }
  const canele_data_t described = nmad::Data::of(data).describe();
  nmad::must_have_memory(described, "nm_mcast_isend");
  canele_multicast_options_t options{};
  options.struct_size = sizeof options;
  options.priorities = priorities;
  options.shape = nmad::shape_of(tree);
  options.header = header;
  nmad::must(canele_imulticast(multicast.session->session, ranks.data(), ranks.size(), tag, &described, &options,
                               &multicast.engine),
             "nm_mcast_isend");
  // The multicast may have ended and been destroyed when this returns.
  nmad::must(canele_request_on_event(&multicast.engine, CANELE_EVENT_FINALIZED, nmad::on_end, &multicast),
             "nm_mcast_isend");
}

extern "C" void nm_mcast_send_destroy(nm_mcast_t* memory) {
  delete &nmad::multicast_of(memory);
  memory->impl_ = nullptr;
}
