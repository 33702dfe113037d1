#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "answer/selection/policies.h"

namespace foliot {
namespace {

// Within a memory of M losses, the loss of the weighted answer is above the best model's by at most
// ln K / (eta M) + eta / 8, where losses are convex (Freund and Schapire, 1997). The defaults are those
// with the shortest memory that makes this kRegret.
constexpr double kRegret = 0.03;
struct Exp4Options {
  double eta = 4 * kRegret;
  double discount = 0;
};
double memory_of(uint32_t models) { return std::log(std::max(models, 2U)) / (2 * kRegret * kRegret); }
// Of the logarithms of weights beside those of a model that has no loss: what less than this allows, such models
// outvote though they err in a tenth of the calls more.
double spread_least(uint32_t models) { return 10 * std::log(models); }

class Exp4Policy final : public SelectionPolicy {
 public:
  Exp4Policy(uint32_t models, const Exp4Options& options) : SelectionPolicy(models), options_(options) {}

  // Logarithms of the weights; the largest is 0.
  SelectionState init() const override { return {std::vector<double>(models())}; }
  std::string caution() const override {
    const double spread = options_.eta / (1 - options_.discount);
    if (spread >= spread_least(models())) return "";
    return fmt::format(
        "eta = {} and discount = {} let no weight be more than exp({:.3g}) times another, so that {} models that make "
        "the same mistakes can outvote a better one: eta / (1 - discount) should be {:.3g} at least",
        options_.eta, options_.discount, spread, models() - 1, spread_least(models()));
  }

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
  const auto models = static_cast<uint32_t>(parts.models.size());
  Exp4Options options{.discount = 1 - 1 / memory_of(models)};
  parts.options.positive("eta", options.eta);
  parts.options.share("discount", options.discount);
  return std::make_unique<Exp4Policy>(models, options);
}

}  // namespace foliot
