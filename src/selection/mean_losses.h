// MeanLosses: the discounted number of losses of each model and their sum, as a state's values:
// first the numbers, then the sums.
#ifndef FOLIOT_SELECTION_MEAN_LOSSES_H_
#define FOLIOT_SELECTION_MEAN_LOSSES_H_

#include <cstddef>

#include "selection/selection_policy.h"

namespace foliot {

class MeanLosses {
 public:
  // Of nothing observed.
  static SelectionState none(size_t models) { return {std::vector<double>(2 * models)}; }

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

#endif  // FOLIOT_SELECTION_MEAN_LOSSES_H_
