#include <algorithm>
#include <cmath>

#include "answer/selection/mean_losses.h"
#include "answer/selection/policies.h"

namespace foliot {
namespace {

struct Ucb1Options {
  double exploration = 0.25;
  double discount = 0;
};

class Ucb1Policy final : public SelectionPolicy {
 public:
  Ucb1Policy(uint32_t models, const Ucb1Options& options) : SelectionPolicy(models), options_(options) {}

  SelectionState init() const override { return MeanLosses::none(models()); }
  std::string caution() const override { return MeanLosses::caution(options_.discount, models()); }

 private:
  Selection choose(const SelectionState& state, const Available& available, Random&) const override {
    const MeanLosses losses(state);
    const double scale = options_.exploration * std::sqrt(2 * std::log(std::max(losses.total(), 1.0)));
    const auto bound = [&](uint32_t model) {
      const double count = losses.count(model);
      return count < kSeen ? -INFINITY : losses.mean(model) - scale / std::sqrt(count);
    };
    std::optional<uint32_t> best;
    for (uint32_t model = 0; model < models(); ++model) {
      if (available[model] && (!best || bound(model) < bound(*best))) best = model;
    }
    return only(*best, models());
  }
  void learn(SelectionState& state, const Selection&, Losses losses) const override {
    MeanLosses::add(state, losses, options_.discount);
  }

  static constexpr double kSeen = 1e-6;  // less of an observation is left: as if there was none
  const Ucb1Options options_;
};

}  // namespace

std::unique_ptr<SelectionPolicy> make_ucb1(const PolicyParts& parts) {
  Ucb1Options options{.discount = MeanLosses::discount_for(parts.models.size())};
  parts.options.not_negative("exploration", options.exploration);
  parts.options.share("discount", options.discount);
  return std::make_unique<Ucb1Policy>(static_cast<uint32_t>(parts.models.size()), options);
}

}  // namespace foliot
