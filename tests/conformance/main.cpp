// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the programs that test built-in drivers. Who: the linker, where a program brings none of its own.
// Threads: the main one. Surprise: none.
#include "tests/conformance/kit.hpp"

int main(int argc, char** argv) { return canele::conformance::run(argc, argv); }
