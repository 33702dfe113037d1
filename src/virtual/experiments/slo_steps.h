// SLO steps: the SLOs of Clockwork's Figures 7 and 8: from 2.9 ms, in which one
// ResNet-50 can just be executed, by half as much again to 74 ms.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_SLO_STEPS_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_SLO_STEPS_H_

#include <cmath>
#include <vector>

namespace foliot {

// In milliseconds, rounded to the hundredth. Each step of the paper in `parts`.
inline std::vector<double> slo_steps_ms(int parts) {
  std::vector<double> steps;
  for (int i = 0; i <= 8 * parts; ++i) {
    steps.push_back(std::round(290 * std::pow(1.5, static_cast<double>(i) / parts)) / 100);
  }
  return steps;
}

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_SLO_STEPS_H_
