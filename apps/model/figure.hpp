// SPDX-License-Identifier: BSD-3-Clause
//
// Figure: curves over a number of ranks, as SVG.
//
// Who: split_tree.cpp. Threads: any; no state.
// Surprise: written by hand, as lines with ticks are some dozen elements: no plotting program is needed. What is more
//     than twice the upper end of the best curve is cut off.
#pragma once

#include <string>
#include <vector>

namespace canele::model {

struct Point {
  double x = 0, y = 0;
};

struct Curve {
  std::string label;
  std::vector<Point> points;
};

struct Figure {
  std::string title, x_label, y_label;
  std::vector<Curve> curves;
};

/// The whole document.
std::string svg(const Figure& figure);

}  // namespace canele::model
