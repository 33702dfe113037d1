// MeanLosses: the discounted number of losses of each model and their sum, as a state's values:
// first the numbers, then the sums.
#ifndef FOLIOT_ANSWER_SELECTION_MEAN_LOSSES_H_
#define FOLIOT_ANSWER_SELECTION_MEAN_LOSSES_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "answer/selection/selection_policy.h"

namespace foliot {

class MeanLosses {
 public:
  // Of nothing observed.
  static SelectionState none(size_t models) { return {std::vector<double>(2 * models)}; }

  // The default discount of so many models: each has to be tried again within the memory, without taking much of
  // it.
  static double discount_for(size_t models) { return 1 - 1 / std::max(1000.0, 200 * static_cast<double>(models)); }
  // SelectionPolicy::caution() of such a discount.
  static std::string caution(double discount, size_t models) {
    const double memory = 1 / (1 - discount);
    if (memory >= 20 * static_cast<double>(models)) return "";
    return fmt::format("discount = {} remembers about {:.0f} losses, too few to distinguish {} models: at least {:.4f}",
                       discount, memory, models, 1 - 1 / (20 * static_cast<double>(models)));
  }

  explicit MeanLosses(const SelectionState& state) : values_(state.values) {}
  size_t models() const { return values_.size() / 2; }
  double count(size_t model) const { return values_[model]; }
  // 0 of what was never observed: all are tried.
  double mean(size_t model) const { return count(model) > 0 ? values_[models() + model] / count(model) : 0; }
  double total() const {
    double sum = 0;
    for (size_t model = 0; model < models(); ++model) sum += count(model);
    return sum;
  }

  static void add(SelectionState& state, SelectionPolicy::Losses losses, double discount) {
    const size_t models = losses.size();
    for (double& value : state.values) value *= discount;
    for (size_t model = 0; model < models; ++model) {
      if (!losses[model]) continue;
      state.values[model] += 1;
      state.values[models + model] += *losses[model];
    }
  }

 private:
  const std::vector<double>& values_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_MEAN_LOSSES_H_
