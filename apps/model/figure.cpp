// SPDX-License-Identifier: BSD-3-Clause
//
// Figures as SVG.
//
// y grows upwards in the data and downwards in the document.
#include "apps/model/figure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace canele::model {
namespace {

constexpr double width = 720, height = 440, left = 60, right = 30, top = 40, bottom = 50;
constexpr std::array<const char*, 6> colours = {"#1b6ca8", "#d1495b", "#2e933c", "#e08e1b", "#6b4c9a", "#777777"};

struct Range {
  double from = std::numeric_limits<double>::max(), to = std::numeric_limits<double>::lowest();

  void include(double value) {
    from = std::min(from, value);
    to = std::max(to, value);
  }
  double part(double value) const { return to > from ? (value - from) / (to - from) : 0.5; }
};

/// Returns twice the maximum of the curve whose maximum is lowest.
double upper_end(const Figure& figure) {
  double lowest = std::numeric_limits<double>::max();
  for (const Curve& curve : figure.curves) {
    double most = 0;
    for (const Point& point : curve.points) most = std::max(most, point.y);
    lowest = std::min(lowest, most);
  }
  return 2 * lowest;
}

struct Axes {
  Range x, y;

  double across(double value) const { return left + x.part(value) * (width - left - right); }
  double down(double value) const { return height - bottom - y.part(value) * (height - top - bottom); }
};

Axes axes_of(const Figure& figure) {
  Axes axes;
  const double limit = upper_end(figure);
  axes.y.include(0);
  for (const Curve& curve : figure.curves) {
    for (const Point& point : curve.points) {
      axes.x.include(point.x);
      axes.y.include(std::min(point.y, limit));
    }
  }
  return axes;
}

/// Returns 1, 2 or 5 times a power of ten, so that there are about eight ticks.
double step_of(const Range& range) {
  const double rough = std::max(range.to - range.from, 1e-9) / 8, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string text(double x, double y, const char* anchor, const std::string& what, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more, what);
}

std::string line(double x1, double y1, double x2, double y2, const char* colour, double thickness) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", x1, y1, x2,
      y2, colour, thickness);
}

std::string grid(const Axes& axes) {
  std::string out;
  for (double at = std::ceil(axes.x.from / step_of(axes.x)) * step_of(axes.x); at <= axes.x.to; at += step_of(axes.x)) {
    out += line(axes.across(at), top, axes.across(at), height - bottom, "#e0e0e0", 1);
    out += text(axes.across(at), height - bottom + 16, "middle", fmt::format("{:g}", at));
  }
  for (double at = 0; at <= axes.y.to; at += step_of(axes.y)) {
    out += line(left, axes.down(at), width - right, axes.down(at), "#e0e0e0", 1);
    out += text(left - 6, axes.down(at) + 4, "end", fmt::format("{:g}", at));
  }
  return out;
}

std::string polyline(const Axes& axes, const Curve& curve, const char* colour) {
  std::string points;
  for (const Point& point : curve.points) {
    points += fmt::format("{:.1f},{:.1f} ", axes.across(point.x), axes.down(point.y));
  }
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" clip-path=\"url(#in)\"/>\n", points,
      colour);
}

}  // namespace

std::string svg(const Figure& figure) {
  const Axes axes = axes_of(figure);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<clipPath id=\"in\"><rect x=\"{2}\" y=\"{3}\" width=\"{4}\" height=\"{5}\"/></clipPath>\n",
      width, height, left, top, width - left - right, height - top - bottom);
  out += grid(axes);
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    const char* colour = colours[i % colours.size()];
    const double y = top + 16 + 18 * static_cast<double>(i);
    out += polyline(axes, figure.curves[i], colour);
    out += line(left + 12, y - 4, left + 36, y - 4, colour, 2);
    out += text(left + 42, y, "start", figure.curves[i].label);
  }
  out += text(width / 2, 24, "middle", figure.title, " font-size=\"15\"");
  out += text(width / 2, height - 12, "middle", figure.x_label);
  out += fmt::format("<text x=\"16\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {0})\">{1}</text>\n",
                     height / 2, figure.y_label);
  return out + "</svg>\n";
}

}  // namespace canele::model
