#include "planning/pipelines/cost_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "foundation/base/check.h"
#include "foundation/base/units.h"
#include "planning/pipelines/coarse_grained.h"

namespace foliot {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 400;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 50;
constexpr double kBottom = 55;

std::string escaped(std::string_view text) {
  std::string to;
  for (const char c : text) {
    switch (c) {
      case '<': to += "&lt;"; break;
      case '>': to += "&gt;"; break;
      case '&': to += "&amp;"; break;
      default: to += c;
    }
  }
  return to;
}

// 1, 2 or 5 times a power of ten, so that there are at most `most` steps up to `end`.
double round_step(double end, int most) {
  double step = std::pow(10, std::floor(std::log10(end / most)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (end / step <= most) return step;
    step *= factor;
  }
  return step;
}

// Places values on the page and draws what belongs to the axes.
class Page {
 public:
  Page(double ms_end, double cost_end) : ms_end_(ms_end), cost_end_(cost_end) {}

  double x(double ms) const { return kLeft + (kWidth - kLeft - kRight) * ms / ms_end_; }
  double y(double cost) const { return kHeight - kBottom - (kHeight - kTop - kBottom) * cost / cost_end_; }

  std::string axes() const {
    std::string text;
    const double cost_step = round_step(cost_end_, 6);
    for (double cost = 0; cost <= cost_end_ * 1.0001; cost += cost_step) {
      text += fmt::format("<path d=\"M{:.1f},{:.1f}H{:.1f}\" class=\"grid\"/>\n", kLeft, y(cost), kWidth - kRight);
      text += label(kLeft - 8, y(cost) + 4, "end", fmt::format("{:g}", cost));
    }
    const double ms_step = round_step(ms_end_, 8);
    for (double ms = 0; ms <= ms_end_ * 1.0001; ms += ms_step) {
      text += fmt::format("<path d=\"M{:.1f},{:.1f}v5\" class=\"axis\"/>\n", x(ms), y(0));
      text += label(x(ms), y(0) + 19, "middle", fmt::format("{:g}", ms));
    }
    text += fmt::format("<path d=\"M{:.1f},{:.1f}H{:.1f}\" class=\"axis\"/>\n", kLeft, y(0), kWidth - kRight);
    text += label(x(ms_end_ / 2), kHeight - 14, "middle", "SLO of the P99 in ms");
    return text + label(kLeft - 50, kTop - 12, "start", "dollars per hour");
  }

  // Costs hold from an SLO to the next.
  std::string steps(const std::vector<CostPoint>& points, double CostPoint::*cost, std::string_view kind) const {
    std::string path;
    for (const CostPoint& point : points) {
      const double at = x(point.slo.to_milliseconds());
      path += path.empty() ? fmt::format("M{:.1f},{:.1f}", at, y(point.*cost))
                           : fmt::format("H{:.1f}V{:.1f}", at, y(point.*cost));
    }
    return fmt::format("<path d=\"{}\" class=\"line {}\"/>\n", path, kind);
  }

  static std::string label(double x, double y, std::string_view anchor, std::string_view text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
  }

 private:
  const double ms_end_;
  const double cost_end_;
};

}  // namespace

std::vector<CostPoint> cost_curve(const PlannedPipeline& pipeline, const QueryTrace& trace, LatencyGoal goal,
                                  const PlannerOptions& options, uint32_t points) {
  FOLIOT_CHECK(points > 1);
  const Duration service = service_time(pipeline, fastest_configuration(pipeline));
  const double begin = service.to_seconds() * 1.05;
  const double end = std::max(4 * service.to_seconds(), 2 * goal.slo.to_seconds());
  std::vector<Duration> slos{goal.slo};
  for (uint32_t i = 0; i < points; ++i) {
    slos.push_back(Duration::from_seconds(begin * std::pow(end / begin, static_cast<double>(i) / (points - 1))));
  }
  std::sort(slos.begin(), slos.end());
  std::vector<CostPoint> curve;
  PlannerOptions following = options;
  for (const Duration slo : slos) {
    const auto planned = plan_pipeline(pipeline, trace, {slo, goal.attainment}, following);
    if (planned.ok()) following.known = planned->configuration;
    const auto coarse = plan_coarse_grained(pipeline, trace, slo, CoarseGrainedRate::kPeak);
    if (planned.ok() && coarse.ok()) curve.push_back({slo, planned->cost, cost(pipeline, coarse->configuration)});
  }
  return curve;
}

std::string draw_cost_curve(std::string_view title, const std::vector<CostPoint>& points, Duration slo) {
  FOLIOT_CHECK(points.size() > 1);
  double cost_end = 0;
  for (const CostPoint& point : points) cost_end = std::max({cost_end, point.cost, point.coarse_cost});
  const double cost_step = round_step(std::max(cost_end, 1e-6), 6);
  const Page page(points.back().slo.to_milliseconds() * 1.02, std::ceil(cost_end / cost_step) * cost_step);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>text {{ font-family: sans-serif; font-size: 12px; fill: #24292f; }}"
      " .grid {{ stroke: #d0d7de; }} .axis {{ stroke: #57606a; fill: none; }}"
      " .line {{ fill: none; stroke-width: 2; }} .plan {{ stroke: #0969da; }}"
      " .coarse {{ stroke: #bc4c00; stroke-dasharray: 6 4; }}"
      " .slo {{ stroke: #57606a; stroke-dasharray: 2 3; }}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  text += Page::label(kWidth / 2, 20, "middle", title);
  text += page.axes();
  const double at = page.x(slo.to_milliseconds());
  text += fmt::format("<path d=\"M{:.1f},{:.1f}V{:.1f}\" class=\"slo\"/>\n", at, kTop, kHeight - kBottom);
  text += Page::label(at + 5, kTop + 12, "start", format_duration(slo));
  text += page.steps(points, &CostPoint::coarse_cost, "coarse") + page.steps(points, &CostPoint::cost, "plan");
  text += fmt::format("<path d=\"M{0},40h24\" class=\"line plan\"/>\n<path d=\"M{1},40h24\" class=\"line coarse\"/>\n",
                      kWidth - 330, kWidth - 230);
  text += Page::label(kWidth - 300, 44, "start", "planned");
  text += Page::label(kWidth - 200, 44, "start", "whole pipelines for the peak");
  return text + "</svg>\n";
}

}  // namespace foliot
