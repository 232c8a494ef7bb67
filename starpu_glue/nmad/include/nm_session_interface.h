/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nm_session_interface.h - included by StarPU for names that nm_public.h already has. Declares nothing. Any thread.
 */
#ifndef CANELE_NM_SESSION_INTERFACE_H
#define CANELE_NM_SESSION_INTERFACE_H

#include <nm_public.h>

#endif
