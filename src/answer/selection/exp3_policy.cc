#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "answer/selection/policies.h"

namespace foliot {
namespace {

// The defaults follow from the number of models K. The rate of learning sqrt(ln K / (K t)) after t losses
// has a regret of at most 2 sqrt(t K ln K) (Auer et al., 2002). It falls for kHorizon losses of each model,
// which have shown the best one, and stays there to follow one that changes.
struct Exp3Options {
  std::optional<double> eta;    // constant
  std::optional<double> floor;  // kExploration / K
  std::optional<double> share;  // kShareOfRate of the rate
};
constexpr double kHorizon = 50;
constexpr double kExploration = 0.01;
constexpr double kShareOfRate = 0.002;
// A floor that takes more of the calls from the best model is worth a caution.
constexpr double kExplorationMost = 0.1;

// Lower ones count the same: exp() of it is 0.
constexpr double kLogWeightMin = -1e6;

class Exp3Policy final : public SelectionPolicy {
 public:
  Exp3Policy(uint32_t models, const Exp3Options& options) : SelectionPolicy(models), options_(options) {}

  // Logarithms of the weights, of which the largest is 0, and behind them the number of losses, up to the
  // horizon.
  SelectionState init() const override { return {std::vector<double>(models() + 1)}; }
  std::string caution() const override {
    const double taken = floor() * (models() - 1);
    if (taken <= kExplorationMost) return "";
    return fmt::format("floor = {} asks models other than the best of {} in {:.0f} % of the calls", floor(), models(),
                       100 * std::min(taken, 1.0));
  }

 private:
  double floor() const { return options_.floor.value_or(kExploration / models()); }
  double horizon() const { return kHorizon * models(); }
  double rate(double losses) const {
    return options_.eta.value_or(std::sqrt(std::log(models()) / (models() * std::min(losses + 1, horizon()))));
  }
  std::span<const double> log_weights(const SelectionState& state) const {
    return std::span(state.values).first(models());
  }

  Selection choose(const SelectionState& state, const Available& available, Random& random) const override {
    const auto count = static_cast<double>(std::ranges::count(available, true));
    const double least = std::min(floor(), 1 / count);
    std::vector<double> probabilities = normalised(log_weights(state), available);
    for (uint32_t model = 0; model < models(); ++model) {
      if (available[model]) probabilities[model] = least + (1 - count * least) * probabilities[model];
    }
    return draw(std::move(probabilities), random);
  }

  void learn(SelectionState& state, const Selection& selected, Losses losses) const override {
    const uint32_t model = selected.models.front();
    const double probability = selected.weights[model];
    if (!losses[model] || probability <= 0) return;
    const double eta = rate(state.values.back());
    const double share = options_.share.value_or(kShareOfRate * eta);
    state.values.back() = std::min(state.values.back() + 1, horizon());
    state.values[model] -= eta * *losses[model] / probability;
    std::vector<double> weights = normalised(log_weights(state), Available(models(), true));
    const double even = share / static_cast<double>(models());
    double largest = 0;
    for (double& weight : weights) {
      weight = (1 - share) * weight + even;
      largest = std::max(largest, weight);
    }
    const double before = *std::ranges::max_element(log_weights(state));
    for (uint32_t i = 0; i < models(); ++i) {
      // Without a share the logarithms go on below what a weight can hold.
      const double log_weight = share > 0 ? std::log(weights[i] / largest) : state.values[i] - before;
      state.values[i] = std::max(log_weight, kLogWeightMin);
    }
  }

  const Exp3Options options_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_exp3(const PolicyParts& parts) {
  Exp3Options options;
  if (parts.options.has("eta")) parts.options.positive("eta", options.eta.emplace());
  if (parts.options.has("floor")) parts.options.share("floor", options.floor.emplace());
  if (parts.options.has("share")) parts.options.share("share", options.share.emplace());
  return std::make_unique<Exp3Policy>(static_cast<uint32_t>(parts.models.size()), options);
}

}  // namespace foliot
