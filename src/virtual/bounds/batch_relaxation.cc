#include "virtual/bounds/batch_relaxation.h"

#include <algorithm>
#include <limits>

namespace foliot {
namespace {

// What rounding may cost a comparison of worths.
constexpr double kTolerance = 1e-9;
constexpr uint32_t kRepairsOfOneMax = 4;

}  // namespace

BatchRelaxation::BatchRelaxation(const BoundKind& kind, const PriceCurve& prices)
    : kind_(kind), prices_(prices), size_of_rows_(kind.sizes.back() + 1), costs_(kind.sizes.size()) {
  size_t size = 0;
  for (uint32_t rows = 1; rows <= kind.sizes.back(); ++rows) {
    if (rows > kind.sizes[size]) ++size;
    size_of_rows_[rows] = size;
  }
}

void BatchRelaxation::update() {
  for (size_t size = 0; size < costs_.size(); ++size) {
    costs_[size].build(prices_.width(), prices_.end(), {0, kind_.exec[size].mean},
                       [&](double start) { return cost(size, start); });
  }
}

StartCosts::Start BatchRelaxation::cheapest(size_t size, uint32_t rows, size_t first, size_t last) const {
  const double copies = kind_.copy * rows;
  const double from = (*requests_)[last].ready + copies;
  const double to = (*requests_)[first].due - copies - kind_.exec[size].fastest;
  if (to < from) return {};
  return costs_[size].best(from, to, [&](double start) { return cost(size, start); });
}

void BatchRelaxation::solve(const std::vector<BoundRequest>& requests) {
  requests_ = &requests;
  const size_t count = requests.size();
  steps_.assign(count + 1, {});
  worths_.resize(count);
  for (size_t last = 0; last < count; ++last) {
    Step best{.value = steps_[last].value};
    const auto rows_max = static_cast<uint32_t>(std::min<size_t>(kind_.sizes.back(), last + 1));
    for (uint32_t rows = 1; rows <= rows_max; ++rows) {
      const size_t first = last + 1 - rows;
      if (steps_[first].value + rows <= best.value) continue;
      const StartCosts::Start start = cheapest(size_of_rows_[rows], rows, first, last);
      if (start.cost > 1e300) break;  // nor could more of them share a batch
      const double value = steps_[first].value + rows - start.cost;
      if (value > best.value) best = {value, rows, start.at};
    }
    steps_[last + 1] = best;
    worths_[last] = best.value - steps_[last].value;
  }
}

void BatchRelaxation::certify() {
  add_backward();
  // The largest batches are nested in none, and those of one row skip nothing.
  for (size_t size = 1; size + 1 < kind_.sizes.size(); ++size) {
    for (size_t first = 0; first < worths_.size(); ++first) {
      repairs_ = 0;
      while (repair(first, size)) {
      }
    }
  }
}

// The mean of worths from both ends holds as they do, and differs less between
// neighbours, so that few batches exceed it.
void BatchRelaxation::add_backward() {
  const size_t count = worths_.size();
  std::vector<double> value(count + 1);
  for (size_t first = count; first-- > 0;) {
    value[first] = value[first + 1];
    const auto rows_max = static_cast<uint32_t>(std::min<size_t>(kind_.sizes.back(), count - first));
    for (uint32_t rows = 1; rows <= rows_max; ++rows) {
      if (value[first + rows] + rows <= value[first]) continue;
      const double cost = cheapest(size_of_rows_[rows], rows, first, first + rows - 1).cost;
      value[first] = std::max(value[first], value[first + rows] + rows - cost);
    }
    worths_[first] = (worths_[first] + value[first] - value[first + 1]) / 2;
  }
}

// Raises the worths of the first batch of this size, with this first request, that
// exceeds them; false if none does. Raising cannot make others exceed them.
bool BatchRelaxation::repair(size_t first, size_t size) {
  least_.assign(kind_.sizes[size] + 1, {});
  least_until_.assign(kind_.sizes[size] + 1, {});
  std::vector<size_t> batch;
  for (size_t last = first; last < worths_.size(); ++last) {
    const double latest = (*requests_)[first].due - 2 * kind_.copy - kind_.exec[size].fastest;
    if ((*requests_)[last].ready > latest) return false;
    extend(first, last, size);
    if (!exceeded(first, last, size, batch)) continue;
    double gain = 0;
    for (const size_t request : batch) gain += 1 - worths_[request];
    const double cost = cheapest(size, kind_.sizes[size - 1] + 1, first, last).cost;
    for (const size_t request : batch) worths_[request] = 1 - (1 - worths_[request]) * (cost / gain);
    // One after another, all the batches of a crowded range may exceed by ever less.
    if (++repairs_ % kRepairsOfOneMax == 0) {
      const double floor = 1 - cost / kind_.sizes[size];
      for (size_t request = first; request <= last; ++request) worths_[request] = std::max(worths_[request], floor);
    }
    return true;
  }
  return false;
}

// Computes least_ for one more request.
void BatchRelaxation::extend(size_t first, size_t last, size_t size) {
  const double none = std::numeric_limits<double>::infinity();
  const size_t at = last - first;
  const size_t skipped_min = kind_.sizes[size] + 1;
  for (uint32_t rows = 1; rows < least_.size(); ++rows) {
    double least = none;
    if (rows == 1) {
      if (at == 0) least = 0;
    } else if (at > 0) {
      least = least_[rows - 1][at - 1];
      if (at > skipped_min) least = std::min(least, least_until_[rows - 1][at - 1 - skipped_min]);
    }
    least_[rows].push_back(least + worths_[last]);
    least_until_[rows].push_back(std::min(at == 0 ? none : least_until_[rows][at - 1], least + worths_[last]));
  }
}

// True if a batch of this size with this first and last request is worth more than its
// requests, which are then in `batch`.
bool BatchRelaxation::exceeded(size_t first, size_t last, size_t size, std::vector<size_t>& batch) const {
  const uint32_t rows_min = kind_.sizes[size - 1] + 1;
  const size_t skipped_min = kind_.sizes[size] + 1;
  if (last - first + 1 < rows_min + skipped_min) return false;
  uint32_t rows = rows_min;
  const auto gain = [&](uint32_t count) { return count - least_[count][last - first]; };
  for (uint32_t more = rows + 1; more <= kind_.sizes[size]; ++more) {
    if (gain(more) > gain(rows)) rows = more;
  }
  if (gain(rows) <= kTolerance || gain(rows) <= cheapest(size, rows_min, first, last).cost + kTolerance) return false;
  batch.clear();
  for (size_t at = last - first; rows > 0; --rows) {
    batch.push_back(first + at);
    if (rows == 1) break;
    size_t before = at - 1;
    if (at > skipped_min && least_until_[rows - 1][at - 1 - skipped_min] < least_[rows - 1][before]) {
      before = at - 1 - skipped_min;
      while (least_[rows - 1][before] > least_until_[rows - 1][at - 1 - skipped_min]) --before;
    }
    at = before;
  }
  return true;
}

void BatchRelaxation::add_use(const std::vector<bool>& covered, std::vector<double>& windows) const {
  for (size_t end = worths_.size(); end > 0;) {
    const Step& step = steps_[end];
    if (step.count == 0) {
      --end;
      continue;
    }
    uint32_t served = 0;
    for (size_t i = end - step.count; i < end; ++i) served += covered[i] ? 1 : 0;
    const double mean = kind_.exec[size_of_rows_[step.count]].mean;
    if (served > 0)
      prices_.add_overlap(step.start, step.start + mean, static_cast<double>(served) / step.count, windows);
    end -= step.count;
  }
}

}  // namespace foliot
