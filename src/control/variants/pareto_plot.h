// A picture of alternatives by cost and accuracy, with their Pareto front: those than which no other
// is at least as accurate and as cheap, and better in one of the two.
#ifndef FOLIOT_CONTROL_VARIANTS_PARETO_PLOT_H_
#define FOLIOT_CONTROL_VARIANTS_PARETO_PLOT_H_

#include <span>
#include <string>
#include <vector>

namespace foliot {

struct ParetoPoint {
  std::string name;
  double cost = 0;
  double accuracy = 0;
};

// By position in `points`.
std::vector<bool> pareto_front(std::span<const ParetoPoint> points);

// As SVG. `cost_label` says what the costs are.
std::string pareto_svg(std::span<const ParetoPoint> points, const std::string& title, const std::string& cost_label);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_VARIANTS_PARETO_PLOT_H_
