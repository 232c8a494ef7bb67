/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_core_interface.h - included by StarPU for names that nm_public.h already has.
 *
 * Declares nothing. nm_trace_add_synchro_point does not exist, which StarPU's configure notices. Any thread.
 */
#ifndef CANELE_NM_CORE_INTERFACE_H
#define CANELE_NM_CORE_INTERFACE_H

#include <nm_public.h>

#endif
