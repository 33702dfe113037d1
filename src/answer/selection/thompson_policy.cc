#include <cmath>

#include "answer/selection/mean_losses.h"
#include "answer/selection/policies.h"

namespace foliot {
namespace {

// Beta(a, b) by two Gamma variates.
double draw_beta(double a, double b, Random& random) {
  const double x = a * random.gamma_with_variation(1 / std::sqrt(a));
  const double y = b * random.gamma_with_variation(1 / std::sqrt(b));
  return x + y > 0 ? x / (x + y) : 0.5;
}

class ThompsonPolicy final : public SelectionPolicy {
 public:
  ThompsonPolicy(uint32_t models, double discount) : SelectionPolicy(models), discount_(discount) {}

  SelectionState init() const override { return MeanLosses::none(models()); }
  std::string caution() const override { return MeanLosses::caution(discount_, models()); }

 private:
  // A uniform prior; a loss between 0 and 1 counts in parts.
  Selection choose(const SelectionState& state, const Available& available, Random& random) const override {
    const MeanLosses losses(state);
    std::optional<uint32_t> best;
    double least = 0;
    for (uint32_t model = 0; model < models(); ++model) {
      if (!available[model]) continue;
      const double lost = losses.count(model) * losses.mean(model);
      const double drawn = draw_beta(1 + lost, 1 + std::max(losses.count(model) - lost, 0.0), random);
      if (best && drawn >= least) continue;
      best = model;
      least = drawn;
    }
    return only(*best, models());
  }
  void learn(SelectionState& state, const Selection&, Losses losses) const override {
    MeanLosses::add(state, losses, discount_);
  }

  const double discount_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_thompson(const PolicyParts& parts) {
  double discount = MeanLosses::discount_for(parts.models.size());
  parts.options.share("discount", discount);
  return std::make_unique<ThompsonPolicy>(static_cast<uint32_t>(parts.models.size()), discount);
}

}  // namespace foliot
