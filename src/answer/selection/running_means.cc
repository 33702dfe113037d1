#include "answer/selection/running_means.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "answer/selection/tensor_values.h"

namespace foliot {

void RunningMeans::add(const Prediction& prediction, uint64_t rows) {
  for (const Prediction::Output& output : prediction.outputs) {
    if (!is_number(output.spec.type)) continue;
    const std::vector<double> values = to_doubles(output.spec.type, output.bytes);
    const size_t row = rows == 0 ? 0 : values.size() / rows;
    if (row == 0 || row > kRowMax) continue;
    Mean& mean = outputs_[output.spec.name];
    if (mean.values.size() != row) mean = {std::vector<double>(row), 0};
    for (size_t at = 0; at + row <= values.size(); at += row) {
      const auto numbers = std::span(values).subspan(at, row);
      if (!std::ranges::all_of(numbers, [](double value) { return std::isfinite(value); })) continue;
      ++mean.rows;
      for (size_t i = 0; i < row; ++i) mean.values[i] += (numbers[i] - mean.values[i]) / mean.rows;
    }
  }
}

const std::vector<double>* RunningMeans::find(std::string_view output, size_t row) const {
  const auto found = outputs_.find(output);
  if (found == outputs_.end() || found->second.values.size() != row || found->second.rows == 0) return nullptr;
  return &found->second.values;
}

}  // namespace foliot
