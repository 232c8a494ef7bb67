/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_core_interface.h - included by StarPU for names that nm_public.h has already.
 *
 * Who: StarPU's nmad backend. Threads: any.
 * Surprise: nothing is declared here; nm_trace_add_synchro_point is not offered, and StarPU's configure notices that.
 */
#ifndef CANELE_NM_CORE_INTERFACE_H
#define CANELE_NM_CORE_INTERFACE_H

#include <nm_public.h>

#endif
