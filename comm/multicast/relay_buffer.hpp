// SPDX-License-Identifier: BSD-3-Clause
//
// Stock: a relay buffer. It is memory of the engine for the data of a multicast that another rank wants before our own
// receive has a buffer. The sum of all stocks is limited. Data that does not fit is not handed on.
//
// Any thread may call these functions, under the engine's lock; relay.cpp does. The copy into the user's buffer is a
// task that runs outside the lock.
//
// With a stock, the user's receive reads nothing from the network, and no forward reads the user's buffer.
#pragma once

#include "comm/multicast/state.hpp"
#include "comm/state/context.hpp"

namespace canele::comm::multicast::stock {

/// Begins to fetch the data. Returns false if there is no room, or no peer left to ask.
bool begin(Context& context, Cast& cast);
/// Returns what forwards read; nullptr if there is no stock.
const canele_data_t* source(const Cast& cast);
/// Handles that the fetch is over.
void filled(Context& context, Cast& cast, int outcome);
/// Lets a receive with a buffer take its data from the stock. Returns false if there is none, or it will never be full.
bool takes_over(Context& context, Request& request, Cast& cast);
/// Gives the memory back, when no forward or copy reads it.
void drop(Context& context, Cast& cast);

}  // namespace canele::comm::multicast::stock
