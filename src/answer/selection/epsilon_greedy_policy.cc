#include <algorithm>

#include "answer/selection/mean_losses.h"
#include "answer/selection/policies.h"

namespace foliot {
namespace {

struct EpsilonGreedyOptions {
  double epsilon = 0.1;
  double discount = 0;
};

class EpsilonGreedyPolicy final : public SelectionPolicy {
 public:
  EpsilonGreedyPolicy(uint32_t models, const EpsilonGreedyOptions& options)
      : SelectionPolicy(models), options_(options) {}

  SelectionState init() const override { return MeanLosses::none(models()); }
  std::string caution() const override { return MeanLosses::caution(options_.discount, models()); }

 private:
  Selection choose(const SelectionState& state, const Available& available, Random& random) const override {
    const MeanLosses losses(state);
    const double each = options_.epsilon / static_cast<double>(std::ranges::count(available, true));
    std::vector<double> probabilities(models());
    std::optional<uint32_t> best;
    for (uint32_t model = 0; model < models(); ++model) {
      if (!available[model]) continue;
      probabilities[model] = each;
      if (!best || losses.mean(model) < losses.mean(*best)) best = model;
    }
    probabilities[*best] += 1 - options_.epsilon;
    return draw(std::move(probabilities), random);
  }
  void learn(SelectionState& state, const Selection&, Losses losses) const override {
    MeanLosses::add(state, losses, options_.discount);
  }

  const EpsilonGreedyOptions options_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_epsilon_greedy(const PolicyParts& parts) {
  EpsilonGreedyOptions options{.discount = MeanLosses::discount_for(parts.models.size())};
  parts.options.share("epsilon", options.epsilon);
  parts.options.share("discount", options.discount);
  return std::make_unique<EpsilonGreedyPolicy>(static_cast<uint32_t>(parts.models.size()), options);
}

}  // namespace foliot
