#include "control/variants/pareto_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

namespace foliot {
namespace {

constexpr double kPlotWidth = 640, kPlotHeight = 400, kPlotLeft = 70, kPlotRight = 150, kPlotTop = 40, kPlotBottom = 50;

struct PlotAxis {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  // Some room at both ends; a single value stands in the middle.
  double share(double value) const {
    const double room = std::max((most - least) * 0.08, most == least ? 1.0 : 0.0);
    return (value - least + room) / (most - least + 2 * room);
  }
};

// Names of models have letters, digits and marks, and may come from files of others.
std::string xml_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<': escaped += "&lt;"; break;
      case '&': escaped += "&amp;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace

std::vector<bool> pareto_front(std::span<const ParetoPoint> points) {
  std::vector<bool> front;
  for (const ParetoPoint& point : points) {
    front.push_back(std::ranges::none_of(points, [&](const ParetoPoint& other) {
      const bool no_worse = other.cost <= point.cost && other.accuracy >= point.accuracy;
      return no_worse && (other.cost < point.cost || other.accuracy > point.accuracy);
    }));
  }
  return front;
}

std::string pareto_svg(std::span<const ParetoPoint> points, const std::string& title, const std::string& cost_label) {
  PlotAxis costs, accuracies;
  for (const ParetoPoint& point : points) {
    costs.add(point.cost);
    accuracies.add(point.accuracy);
  }
  const auto x = [&](double cost) { return kPlotLeft + costs.share(cost) * (kPlotWidth - kPlotLeft - kPlotRight); };
  const auto y = [&](double accuracy) {
    return kPlotHeight - kPlotBottom - accuracies.share(accuracy) * (kPlotHeight - kPlotTop - kPlotBottom);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kPlotWidth, kPlotHeight);
  const auto text = [&](double at_x, double at_y, const std::string& what, const char* more = "") {
    fmt::format_to(std::back_inserter(svg), "<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", at_x, at_y, more,
                   xml_text(what));
  };
  fmt::format_to(std::back_inserter(svg), "<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"black\"/>\n", kPlotLeft,
                 kPlotTop, kPlotHeight - kPlotBottom, kPlotWidth - kPlotRight);
  text(kPlotLeft, 20, title, " font-weight=\"bold\"");
  text(kPlotLeft, kPlotHeight - 12, cost_label);
  text(4, kPlotTop - 6, "accuracy");
  const std::vector<bool> front = pareto_front(points);
  std::vector<const ParetoPoint*> line;
  for (size_t i = 0; i < points.size(); ++i) {
    const ParetoPoint& point = points[i];
    if (front[i]) line.push_back(&point);
    fmt::format_to(std::back_inserter(svg), "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"/>\n",
                   x(point.cost), y(point.accuracy), front[i] ? "#0b6e4f" : "#b0b0b0");
    text(x(point.cost) + 8, y(point.accuracy) - 6,
         fmt::format("{} ({:.4g}, {:.3g})", point.name, point.accuracy, point.cost));
  }
  std::ranges::sort(line, {}, &ParetoPoint::cost);
  std::string path;
  for (const ParetoPoint* point : line) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point->cost), y(point->accuracy));
  }
  if (line.size() > 1) svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#0b6e4f\"/>\n", path);
  return svg + "</svg>\n";
}

}  // namespace foliot
