#include "virtual/world/resource_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// What is left of an operator below this has been rounded, not left.
constexpr double kRounded = 1e-3;

double nanoseconds(Duration duration) { return static_cast<double>(duration.nanoseconds()); }

}  // namespace

void ResourceModel::begin(Key key, std::vector<OperatorLoad> operators, TimePoint now) {
  FOLIOT_CHECK(!operators.empty() && std::ranges::find(running_, key, &Running::key) == running_.end());
  advance(now);
  const double left = nanoseconds(operators.front().alone);
  running_.push_back({key, std::move(operators), 0, left});
}

void ResourceModel::end(Key key, TimePoint now) {
  advance(now);
  FOLIOT_CHECK(std::erase_if(running_, [&](const Running& each) { return each.key == key; }) == 1);
}

double ResourceModel::slowdown(const std::vector<Running>& running) {
  double compute = 0;
  double memory = 0;
  for (const Running& each : running) {
    if (each.over()) continue;
    compute += each.operators[each.at].compute;
    memory += each.operators[each.at].memory;
  }
  return std::max({1.0, compute, memory});
}

double ResourceModel::step(std::vector<Running>& running, double span) {
  const double slow = slowdown(running);
  double least = std::numeric_limits<double>::infinity();
  for (const Running& each : running) {
    if (!each.over()) least = std::min(least, each.left);
  }
  const double passed = std::min(span, least * slow);
  for (Running& each : running) {
    if (each.over()) continue;
    each.left -= passed / slow;
    if (each.left > kRounded) continue;
    ++each.at;
    each.left = each.over() ? 0 : nanoseconds(each.operators[each.at].alone);
  }
  return passed;
}

void ResourceModel::advance(TimePoint now) {
  FOLIOT_CHECK(now >= now_);
  double span = nanoseconds(now - now_);
  now_ = now;
  const auto over = [](const Running& each) { return each.over(); };
  while (span > 0 && !std::ranges::all_of(running_, over)) span -= step(running_, span);
}

std::optional<std::pair<ResourceModel::Key, TimePoint>> ResourceModel::next_end() const {
  if (running_.empty()) return std::nullopt;
  std::vector<Running> running = running_;
  double passed = 0;
  while (true) {
    const auto found = std::ranges::find_if(running, [](const Running& each) { return each.over(); });
    if (found != running.end()) {
      return std::pair(found->key, now_ + Duration::nanoseconds(static_cast<int64_t>(std::ceil(passed))));
    }
    passed += step(running, std::numeric_limits<double>::infinity());
  }
}

Duration time_together(const std::vector<std::vector<OperatorLoad>>& execs) {
  ResourceModel model;
  for (size_t i = 0; i < execs.size(); ++i) model.begin(i, execs[i], TimePoint());
  TimePoint last;
  while (const auto next = model.next_end()) {
    last = std::max(last, next->second);
    model.end(next->first, last);
  }
  return last - TimePoint();
}

}  // namespace foliot
