#include <algorithm>

#include "selection/policies.h"

namespace foliot {
namespace {

struct Exp4Options {
  double eta = 0.005;
  double discount = 0.999;
};

class Exp4Policy final : public SelectionPolicy {
 public:
  Exp4Policy(uint32_t models, const Exp4Options& options) : SelectionPolicy(models), options_(options) {}

  // Logarithms of the weights; the largest is 0.
  SelectionState init() const override { return {std::vector<double>(models())}; }

 private:
  Selection choose(const SelectionState& state, const Available& available, Random&) const override {
    return all_of(available, normalised(state.values, available));
  }

  void learn(SelectionState& state, const Selection&, Losses losses) const override {
    double sum = 0;
    double count = 0;
    for (const std::optional<double>& loss : losses) {
      if (!loss) continue;
      sum += *loss;
      ++count;
    }
    if (count == 0) return;
    // A model whose loss is unknown neither gains nor loses: it counts as the mean of the others.
    for (uint32_t model = 0; model < models(); ++model) {
      state.values[model] =
          options_.discount * state.values[model] - options_.eta * losses[model].value_or(sum / count);
    }
    const double largest = *std::ranges::max_element(state.values);
    for (double& value : state.values) value = std::max(value - largest, kLowest);
  }

  static constexpr double kLowest = -1e6;  // lower ones count the same: exp() of it is 0
  const Exp4Options options_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_exp4(const PolicyParts& parts) {
  Exp4Options options;
  parts.options.positive("eta", options.eta);
  parts.options.share("discount", options.discount);
  return std::make_unique<Exp4Policy>(static_cast<uint32_t>(parts.models.size()), options);
}

}  // namespace foliot
