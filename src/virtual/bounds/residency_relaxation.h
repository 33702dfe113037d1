// ResidencyRelaxation: the best times to load and evict one model, at given prices of
// LOAD and of memory, where each request that finds it resident has a given worth.
//
// A stay on a device begins with a LOAD at x and ends at y, costs the price of LOAD and
// pages times that of memory over [x, y), and serves a request if an EXEC of a batch of
// one, as fast as one can be, fits between the end of the LOAD and y and between its
// arrival and its deadline. Requests are in the order of both, so the stays of a best
// plan serve disjoint runs of consecutive requests (a longer stay can take over what an
// earlier one serves), and a longest path over them finds it.
#ifndef FOLIOT_VIRTUAL_BOUNDS_RESIDENCY_RELAXATION_H_
#define FOLIOT_VIRTUAL_BOUNDS_RESIDENCY_RELAXATION_H_

#include <cstdint>
#include <vector>

#include "virtual/bounds/bound_model.h"
#include "virtual/bounds/price_curve.h"
#include "virtual/bounds/start_costs.h"

namespace foliot {

class ResidencyRelaxation {
 public:
  // `warm`: it may be resident at 0 without a LOAD. The rest outlives it.
  ResidencyRelaxation(const BoundKind& kind, bool warm, const PriceCurve& loads, const PriceCurve& memory);

  // Prices have changed.
  void update();
  // What the best plan is worth.
  double solve(const std::vector<BoundRequest>& requests, const std::vector<double>& worths);
  // Of that plan: which requests find the model resident.
  const std::vector<bool>& covered() const { return covered_; }
  // Adds the time of its LOADs, and its pages times their time.
  void add_use(std::vector<double>& load_windows, std::vector<double>& memory_windows) const;

 private:
  static constexpr double kInitial = -1;  // the LOAD of a stay from the beginning

  // The last stay of the best plan for the requests before some one.
  struct Step {
    double value = 0;
    bool stay = false;  // false: the last of them is left out
    size_t first = 0;   // that the stay serves
    double load = 0;    // when its LOAD begins
    double end = 0;
  };
  // The best plan whose last stay is not over.
  struct Open {
    double value = 0;
    size_t first = 0;
    double load = kInitial;
  };
  double occupied(double from, double to) const { return kind_.pages * (memory_.until(to) - memory_.until(from)); }
  // Of a stay that begins with a LOAD at x: without the memory from 0 until its end.
  double cost_to_open(double load) const { return loads_.expected(load, kind_.load) - occupied(0, load); }
  // Of one that ends as soon as it has served one batch after its LOAD.
  double cost_of_one(double load) const { return loads_.expected(load, kind_.load) + occupied(load, load + once_); }
  void late_loads(const std::vector<BoundRequest>& requests, size_t arrived, size_t& first, Open& open);
  void trace_back();

  const BoundKind& kind_;
  const bool warm_;
  const PriceCurve& loads_;
  const PriceCurve& memory_;
  const double once_;  // LOAD and EXEC of one, at the fastest
  StartCosts to_open_;
  StartCosts of_one_;
  std::vector<double> worth_before_;  // sums
  std::vector<Step> steps_;
  std::vector<Step> stays_;
  std::vector<bool> covered_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_RESIDENCY_RELAXATION_H_
