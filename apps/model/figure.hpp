// SPDX-License-Identifier: BSD-3-Clause
//
// Figure: curves over a number of ranks, as SVG. Any thread; no state.
//
// The SVG is written directly, because lines with ticks are a few dozen elements: no plotting program is needed. Values
// above twice the upper end of the best curve are cut off.
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

/// Returns the whole document.
std::string svg(const Figure& figure);

}  // namespace canele::model
