// SPDX-License-Identifier: BSD-3-Clause
//
// Stock: memory of the engine for the data of a multicast that somebody wants from us before our own receive has a
// buffer. Its sum is capped; what does not fit is not handed on.
//
// Who: relay.cpp. Threads: under the engine's lock, but for the copy into the user's buffer, which is a task.
// Surprise: with a stock, the user's receive reads nothing from the network, and nobody reads the user's buffer.
#pragma once

#include "comm/core/engine.hpp"

namespace canele::comm::multicast::stock {

/// Fetches the data. False: no room, or nobody to ask.
bool begin(Engine& engine, Cast& cast);
/// What forwards read; nullptr: there is no stock.
const canele_data_t* source(const Cast& cast);
/// The fetch is over.
void filled(Engine& engine, Cast& cast, int outcome);
/// A receive with a buffer takes its data from the stock. False: there is none, or it will never be full.
bool takes_over(Engine& engine, Request& request, Cast& cast);
/// Gives the memory back. Nobody reads it.
void drop(Engine& engine, Cast& cast);

}  // namespace canele::comm::multicast::stock
