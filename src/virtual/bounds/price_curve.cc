#include "virtual/bounds/price_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// E[max(-N, 0)] of a standard normal N is 0.3989.
constexpr double kMeanShortfall = 0.4;
constexpr double kSameInstant = 1e-9;

}  // namespace

PriceCurve::PriceCurve(double width, size_t windows) : width_(width) { set_prices(std::vector<double>(windows)); }

void PriceCurve::set_prices(std::vector<double> prices) {
  FOLIOT_CHECK(prices_.empty() || prices.size() == prices_.size());
  prices_ = std::move(prices);
  const size_t windows = prices_.size();
  integral_.assign(windows + 1, 0);
  falls_.assign(windows + 1, 0);
  for (size_t i = 0; i < windows; ++i) {
    integral_[i + 1] = integral_[i] + prices_[i] * width_;
    const double fall = std::max(prices_[i] - (i + 1 < windows ? prices_[i + 1] : 0), 0.0);
    falls_[i] += fall;
    falls_[i + 1] += fall;
  }
}

void PriceCurve::refine() {
  std::vector<double> halves;
  halves.reserve(2 * prices_.size());
  for (const double price : prices_) halves.insert(halves.end(), 2, price);
  width_ /= 2;
  prices_.clear();
  set_prices(std::move(halves));
}

double PriceCurve::until(double at) const {
  if (at <= 0) return 0;
  const double position = at / width_;
  const auto window = static_cast<size_t>(position);
  if (window >= prices_.size()) return integral_.back();
  return integral_[window] + prices_[window] * (at - static_cast<double>(window) * width_);
}

double PriceCurve::highest() const { return *std::max_element(prices_.begin(), prices_.end()); }

double PriceCurve::falls_near(double at) const {
  if (at < 0) return 0;
  const auto window = static_cast<size_t>((at + kSameInstant) / width_);
  if (window >= falls_.size()) return 0;
  const bool at_border = window > 0 && std::abs(at - static_cast<double>(window) * width_) <= kSameInstant;
  return at_border ? std::max(falls_[window], falls_[window - 1]) : falls_[window];
}

double PriceCurve::expected(double start, const ActionLength& length) const {
  const double end = start + length.mean;
  const double integral = until(end) - until(start);
  if (integral == 0 || length.deviation == 0) return integral;
  return std::max(integral - kMeanShortfall * length.deviation * falls_near(end), 0.0);
}

void PriceCurve::add_overlap(double from, double to, double amount, std::vector<double>& to_windows) const {
  from = std::max(from, 0.0);
  to = std::min(to, end());
  if (from >= to) return;
  for (auto window = static_cast<size_t>(from / width_); window < windows(); ++window) {
    const double begin = static_cast<double>(window) * width_;
    if (begin >= to) return;
    to_windows[window] += amount * std::max(std::min(to, begin + width_) - std::max(from, begin), 0.0);
  }
}

}  // namespace foliot
