#include <algorithm>
#include <cmath>

#include "selection/policies.h"

namespace foliot {
namespace {

struct Exp3Options {
  double eta = 0.05;
  double floor = 0.02;
  double share = 1e-4;
};

// Lower ones count the same: exp() of it is 0.
constexpr double kLogWeightMin = -1e6;

class Exp3Policy final : public SelectionPolicy {
 public:
  Exp3Policy(uint32_t models, const Exp3Options& options) : SelectionPolicy(models), options_(options) {}

  // Logarithms of the weights; the largest is 0.
  SelectionState init() const override { return {std::vector<double>(models())}; }

 private:
  Selection choose(const SelectionState& state, const Available& available, Random& random) const override {
    const auto count = static_cast<double>(std::ranges::count(available, true));
    const double floor = std::min(options_.floor, 1 / count);
    std::vector<double> probabilities = normalised(state.values, available);
    for (uint32_t model = 0; model < models(); ++model) {
      if (available[model]) probabilities[model] = floor + (1 - count * floor) * probabilities[model];
    }
    return draw(std::move(probabilities), random);
  }

  void learn(SelectionState& state, const Selection& selected, Losses losses) const override {
    const uint32_t model = selected.models.front();
    const double probability = selected.weights[model];
    if (!losses[model] || probability <= 0) return;
    state.values[model] -= options_.eta * *losses[model] / probability;
    std::vector<double> weights = normalised(state.values, Available(models(), true));
    const double even = options_.share / static_cast<double>(models());
    double largest = 0;
    for (double& weight : weights) {
      weight = (1 - options_.share) * weight + even;
      largest = std::max(largest, weight);
    }
    const double before = *std::ranges::max_element(state.values);
    for (uint32_t i = 0; i < models(); ++i) {
      // Without a share the logarithms go on below what a weight can hold.
      const double log_weight = options_.share > 0 ? std::log(weights[i] / largest) : state.values[i] - before;
      state.values[i] = std::max(log_weight, kLogWeightMin);
    }
  }

  const Exp3Options options_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_exp3(const PolicyParts& parts) {
  Exp3Options options;
  parts.options.positive("eta", options.eta);
  parts.options.share("floor", options.floor);
  parts.options.share("share", options.share);
  return std::make_unique<Exp3Policy>(static_cast<uint32_t>(parts.models.size()), options);
}

}  // namespace foliot
