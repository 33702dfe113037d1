#include "answer/selection/own_policy.h"

#include <algorithm>
#include <numeric>

#include "foundation/base/check.h"

namespace foliot {

OwnPolicy::OwnPolicy(OwnPolicyOptions options, std::shared_ptr<const SelectionPolicy> fallback)
    : SelectionPolicy(static_cast<uint32_t>(options.models.size())),
      options_(std::move(options)),
      fallback_(std::move(fallback)),
      fallback_values_(fallback_->init().values.size()) {}

bool OwnPolicy::is_size(size_t values) const {
  const size_t least = fallback_values_ + models();
  return values == fallback_values_ || (values >= least && values <= least + kStateMax);
}

SelectionState OwnPolicy::fallback_state(const SelectionState& state) const {
  return {{state.values.begin(), state.values.begin() + static_cast<std::ptrdiff_t>(fallback_values_)}};
}

std::span<const double> OwnPolicy::own_state(const SelectionState& state) const {
  if (!has_part(state)) return {};
  return std::span(state.values).subspan(fallback_values_ + models());
}

void OwnPolicy::set_part(SelectionState& state, const Part& part) const {
  FOLIOT_CHECK(part.weights.size() == models() && part.state.size() <= kStateMax);
  state.values.resize(fallback_values_);
  state.values.insert(state.values.end(), part.weights.begin(), part.weights.end());
  state.values.insert(state.values.end(), part.state.begin(), part.state.end());
}

void OwnPolicy::keep_part(const SelectionState& from, SelectionState& to) const {
  to.values.resize(fallback_values_);
  to.values.insert(to.values.end(), from.values.begin() + static_cast<std::ptrdiff_t>(fallback_values_),
                   from.values.end());
}

Selection OwnPolicy::select_by_fallback(const SelectionState& state, const Available& available, Random& random) const {
  return fallback_->select(fallback_state(state), available, random);
}

Selection OwnPolicy::choose(const SelectionState& state, const Available& available, Random& random) const {
  if (!has_part(state)) return select_by_fallback(state, available, random);
  std::vector<double> weights(models());
  for (uint32_t model = 0; model < models(); ++model) {
    if (available[model]) weights[model] = state.values[fallback_values_ + model];
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(sum > 0)) return select_by_fallback(state, available, random);
  for (double& weight : weights) weight /= sum;
  if (!options_.combines) return draw(std::move(weights), random);
  Available asked(models());
  for (uint32_t model = 0; model < models(); ++model) asked[model] = weights[model] > 0;
  return all_of(asked, std::move(weights));
}

void OwnPolicy::learn(SelectionState& state, const Selection& selected, Losses losses) const {
  SelectionState learned = fallback_state(state);
  FOLIOT_CHECK(fallback_->observe(learned, selected, losses).ok());
  std::ranges::copy(learned.values, state.values.begin());
}

}  // namespace foliot
