/* SPDX-License-Identifier: BSD-3-Clause
 *
 * settings.h - the settings of the engine (docs/settings.md), for tools that show or change them.
 *
 * The conventions of canele.h hold. */
#ifndef CANELE_SETTINGS_H
#define CANELE_SETTINGS_H

#include <canele/canele.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Number of settings; the name of setting `index` without CANELE_, and its help text, or NULL if there is no such
 * setting. The table never changes. Names that begin with EXPERT_ are for tuning and tests. */
CANELE_API int canele_setting_count(void);
CANELE_API const char *canele_setting_name(int index);
CANELE_API const char *canele_setting_help(int index);

/** Writes the value of setting `index` to `text`, as for canele_counters_json. engine = NULL: the value that the
 * environment gives to the next canele_init. CANELE_EINVAL if there is no such setting. */
CANELE_API int canele_setting_read(canele_engine_t *engine, int index, char *text, size_t size, size_t *needed);

#ifdef __cplusplus
}
#endif

#endif
