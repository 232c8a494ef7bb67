// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the programs that test built-in drivers. Linked where a program has none of its own.
#include "tests/conformance/kit.hpp"

int main(int argc, char** argv) { return canele::conformance::run(argc, argv); }
