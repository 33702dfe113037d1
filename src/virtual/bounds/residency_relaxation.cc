#include "virtual/bounds/residency_relaxation.h"

#include <algorithm>
#include <limits>

namespace foliot {

ResidencyRelaxation::ResidencyRelaxation(const BoundKind& kind, bool warm, const PriceCurve& loads,
                                         const PriceCurve& memory)
    : kind_(kind), warm_(warm), loads_(loads), memory_(memory), once_(kind.load.fastest + kind.exec.front().fastest) {}

void ResidencyRelaxation::update() {
  to_open_.build(loads_.width(), loads_.end(), {0, kind_.load.mean}, [&](double load) { return cost_to_open(load); });
  of_one_.build(loads_.width(), loads_.end(), {0, kind_.load.mean, once_},
                [&](double load) { return cost_of_one(load); });
}

double ResidencyRelaxation::solve(const std::vector<BoundRequest>& requests, const std::vector<double>& worths) {
  const size_t count = requests.size();
  steps_.assign(count + 1, {});
  worth_before_.assign(count + 1, 0);
  for (size_t i = 0; i < count; ++i) worth_before_[i + 1] = worth_before_[i] + worths[i];
  Open open{.value = warm_ ? 0 : -std::numeric_limits<double>::infinity()};
  size_t first = 0;  // that a LOAD after its arrival could still serve
  for (size_t i = 0; i < count; ++i) {
    const double exec_from = requests[i].ready + kind_.copy;
    if (steps_[i + 1].value < steps_[i].value) steps_[i + 1] = {.value = steps_[i].value};
    // Loaded before it comes, by a LOAD of its own or for those before it.
    if (const double latest = exec_from - kind_.load.fastest; latest >= 0) {
      const auto start = to_open_.best_until(latest, [&](double load) { return cost_to_open(load); });
      const double value = steps_[i].value - start.cost;
      if (value > open.value) open = {value, i, start.at};
    }
    open.value += worths[i];
    const double end = exec_from + kind_.exec.front().fastest;
    const double value = open.value - occupied(0, end);
    if (value > steps_[i + 1].value) steps_[i + 1] = {value, true, open.first, open.load, end};
    late_loads(requests, i, first, open);
  }
  trace_back();
  return steps_.back().value;
}

// LOADs that end after the arrival of request `arrived` and before that of the next.
void ResidencyRelaxation::late_loads(const std::vector<BoundRequest>& requests, size_t arrived, size_t& first,
                                     Open& open) {
  const double infinity = std::numeric_limits<double>::infinity();
  double loaded = requests[arrived].ready + kind_.copy;
  const double next = arrived + 1 < requests.size() ? requests[arrived + 1].ready + kind_.copy : infinity;
  for (; first <= arrived; ++first) {
    const double last_start = requests[first].due - kind_.copy - kind_.exec.front().fastest;
    if (last_start < loaded) continue;
    const double from = std::max(loaded - kind_.load.fastest, 0.0);
    const double to = std::min(last_start, next) - kind_.load.fastest;
    if (to >= from) {
      const double worth = steps_[first].value + worth_before_[arrived + 1] - worth_before_[first];
      const auto one = of_one_.best(from, to, [&](double load) { return cost_of_one(load); });
      Step& step = steps_[arrived + 1];
      if (worth - one.cost > step.value) step = {worth - one.cost, true, first, one.at, one.at + once_};
      const auto start = to_open_.best(from, to, [&](double load) { return cost_to_open(load); });
      if (worth - start.cost > open.value) open = {worth - start.cost, first, start.at};
    }
    if (next <= last_start) return;
    loaded = last_start;
  }
}

void ResidencyRelaxation::trace_back() {
  covered_.assign(steps_.size() - 1, false);
  stays_.clear();
  for (size_t end = steps_.size() - 1; end > 0;) {
    const Step& step = steps_[end];
    if (!step.stay) {
      --end;
      continue;
    }
    std::fill(covered_.begin() + static_cast<ptrdiff_t>(step.first), covered_.begin() + static_cast<ptrdiff_t>(end),
              true);
    stays_.push_back(step);
    end = step.first;
  }
}

void ResidencyRelaxation::add_use(std::vector<double>& load_windows, std::vector<double>& memory_windows) const {
  for (const Step& stay : stays_) {
    const bool initial = stay.load == kInitial;
    if (!initial) loads_.add_overlap(stay.load, stay.load + kind_.load.mean, 1, load_windows);
    memory_.add_overlap(initial ? 0 : stay.load, stay.end, kind_.pages, memory_windows);
  }
}

}  // namespace foliot
