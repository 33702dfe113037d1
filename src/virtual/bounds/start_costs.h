// StartCosts: the cheapest instant at which something can begin, where what it costs
// is a function of that instant that is linear between breakpoints. Breakpoints lie at
// the multiples of a window's width less a few shifts: where the beginning, or some
// instant that follows it after a fixed time, comes to a border between two windows.
//
// Times are in seconds (virtual/bounds/price_curve.h).
#ifndef FOLIOT_VIRTUAL_BOUNDS_START_COSTS_H_
#define FOLIOT_VIRTUAL_BOUNDS_START_COSTS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace foliot {

class StartCosts {
 public:
  struct Start {
    double cost = std::numeric_limits<double>::infinity();
    double at = 0;
  };

  // For instants from 0 to `end`. `cost(instant)` is linear between the breakpoints.
  template <typename Cost>
  void build(double width, double end, const std::vector<double>& shifts, const Cost& cost) {
    width_ = width;
    offsets_.clear();
    for (const double shift : shifts) offsets_.push_back(shift == 0 ? 0 : width - std::fmod(shift, width));
    std::sort(offsets_.begin(), offsets_.end());
    const auto periods = static_cast<size_t>(end / width) + 2;
    costs_.resize(periods * offsets_.size());
    for (size_t i = 0; i < costs_.size(); ++i) costs_[i] = cost(at(i));
    build_minima();
  }

  // The cheapest in [from, to]. REQUIRES: 0 <= from <= to <= end; `cost` is the one
  // that it was built from.
  template <typename Cost>
  Start best(double from, double to, const Cost& cost) const {
    Start found{cost(from), from};
    if (const double last = cost(to); last < found.cost) found = {last, to};
    const size_t first = first_from(from);
    const size_t end = first_from(to);
    if (first >= end) return found;
    const uint32_t inside = lowest(first, end);
    if (costs_[inside] < found.cost) found = {costs_[inside], at(inside)};
    return found;
  }

  // The cheapest in [0, to].
  template <typename Cost>
  Start best_until(double to, const Cost& cost) const {
    Start found{cost(to), to};
    const size_t end = first_from(to);
    if (end > 0 && costs_[lowest_until_[end - 1]] < found.cost) {
      found = {costs_[lowest_until_[end - 1]], at(lowest_until_[end - 1])};
    }
    return found;
  }

 private:
  double at(size_t index) const {
    return static_cast<double>(index / offsets_.size()) * width_ + offsets_[index % offsets_.size()];
  }
  // The first breakpoint that is not before `instant`.
  size_t first_from(double instant) const {
    const auto period = static_cast<size_t>(std::max(instant, 0.0) / width_);
    const double rest = instant - static_cast<double>(period) * width_;
    size_t index = period * offsets_.size();
    for (const double offset : offsets_) {
      if (offset >= rest) break;
      ++index;
    }
    return std::min(index, costs_.size());
  }
  // Of [first, end), which is not empty.
  uint32_t lowest(size_t first, size_t end) const {
    size_t level = 0;
    while ((size_t{2} << level) <= end - first) ++level;
    const uint32_t a = minima_[level][first];
    const uint32_t b = minima_[level][end - (size_t{1} << level)];
    return costs_[b] < costs_[a] ? b : a;
  }
  // minima_[level][i]: the lowest of the 2^level from i on. Ranges that are asked for
  // span the SLO and some windows of it, but for those from 0 on.
  void build_minima() {
    const size_t count = costs_.size();
    minima_.resize(1);
    minima_[0].resize(count);
    lowest_until_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      minima_[0][i] = i;
      lowest_until_[i] = i > 0 && costs_[lowest_until_[i - 1]] <= costs_[i] ? lowest_until_[i - 1] : i;
    }
    for (size_t length = 2; length <= count; length *= 2) {
      const std::vector<uint32_t>& below = minima_.back();
      std::vector<uint32_t> level(count - length + 1);
      for (size_t i = 0; i < level.size(); ++i) {
        const uint32_t a = below[i];
        const uint32_t b = below[i + length / 2];
        level[i] = costs_[b] < costs_[a] ? b : a;
      }
      minima_.push_back(std::move(level));
    }
  }

  double width_ = 1;
  std::vector<double> offsets_;
  std::vector<double> costs_;
  std::vector<std::vector<uint32_t>> minima_;
  std::vector<uint32_t> lowest_until_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_START_COSTS_H_
