#include "answer/selection/selection_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {

std::string to_bytes(const SelectionState& state) {
  const std::span bytes = std::as_bytes(std::span(state.values));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

SelectionPolicy::SelectionPolicy(uint32_t models) : models_(models) { FOLIOT_CHECK(models > 0); }

Result<SelectionState> SelectionPolicy::parse(std::string_view bytes) const {
  SelectionState state = init();
  if (bytes.size() % sizeof(double) != 0 || !is_size(bytes.size() / sizeof(double))) {
    return Status::invalid_argument(fmt::format("a state of {} bytes; this policy with {} models has {}", bytes.size(),
                                                models_, state.values.size() * sizeof(double)));
  }
  state.values.resize(bytes.size() / sizeof(double));
  std::ranges::copy(std::as_bytes(std::span(bytes)), std::as_writable_bytes(std::span(state.values)).begin());
  if (!std::ranges::all_of(state.values, [](double value) { return std::isfinite(value); })) {
    return Status::invalid_argument("a state with a value that is not a number");
  }
  return state;
}

Selection SelectionPolicy::select(const SelectionState& state, const Available& available, Random& random) const {
  FOLIOT_CHECK(available.size() == models_ && std::ranges::count(available, true) > 0);
  Selection selection = choose(state, available, random);
  selection.available = available;
  return selection;
}

Status SelectionPolicy::observe(SelectionState& state, const Selection& selected, Losses losses) const {
  FOLIOT_CHECK(losses.size() == models_ && selected.weights.size() == models_);
  std::vector<std::optional<double>> known(models_);
  for (const uint32_t model : selected.models) {
    if (!losses[model]) continue;
    if (std::isnan(*losses[model])) return Status::invalid_argument("a loss is NaN; it must be a number from 0 to 1");
    known[model] = std::clamp(*losses[model], 0.0, 1.0);
  }
  learn(state, selected, known);
  return Status();
}

Selection draw(std::vector<double> probabilities, Random& random) {
  double left = random.uniform();
  uint32_t drawn = 0;
  for (uint32_t model = 0; model < probabilities.size(); ++model) {
    if (probabilities[model] <= 0) continue;
    drawn = model;  // the last one, should rounding leave a rest
    left -= probabilities[model];
    if (left < 0) break;
  }
  return {{drawn}, std::move(probabilities)};
}

Selection only(uint32_t model, size_t models) {
  Selection selection{{model}, std::vector<double>(models)};
  selection.weights[model] = 1;
  return selection;
}

Selection all_of(const SelectionPolicy::Available& available, std::vector<double> weights) {
  Selection selection{{}, std::move(weights)};
  double sum = 0;
  for (uint32_t model = 0; model < available.size(); ++model) {
    if (available[model]) selection.models.push_back(model);
    if (!available[model]) selection.weights[model] = 0;
    sum += selection.weights[model];
  }
  for (const uint32_t model : selection.models) {
    double& weight = selection.weights[model];
    weight = sum > 0 ? weight / sum : 1 / static_cast<double>(selection.models.size());
  }
  return selection;
}

std::vector<double> normalised(std::span<const double> log_weights, const SelectionPolicy::Available& available) {
  double largest = -INFINITY;
  for (size_t model = 0; model < log_weights.size(); ++model) {
    if (available[model]) largest = std::max(largest, log_weights[model]);
  }
  std::vector<double> weights(log_weights.size());
  double sum = 0;
  for (size_t model = 0; model < log_weights.size(); ++model) {
    if (available[model]) sum += weights[model] = std::exp(log_weights[model] - largest);
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace foliot
