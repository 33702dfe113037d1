// The fluid estimate: the load that devices could carry if requests came as a steady
// flow. No bound: arrivals are not steady, so more requests can share a batch than it
// counts with, and which are answered can be chosen; and LOADs, memory and links are
// free in it. The clairvoyant bound (virtual/bounds/clairvoyant_bound.h) accounts for all these. A
// model m that is asked rate_m times a second is run in batches of b*, as large as its
// deadlines allow:
//
//   b = 1 + rate_m * (SLO_m - L_m(b))        (the first of a batch waits for the rest)
//
// and needs rate_m * L_m(b*) / b* of a device. L_m is linear between the batch sizes
// that were profiled, and b* at most the largest.
#ifndef FOLIOT_VIRTUAL_BOUNDS_FLUID_ESTIMATE_H_
#define FOLIOT_VIRTUAL_BOUNDS_FLUID_ESTIMATE_H_

#include <vector>

#include "foundation/base/time.h"
#include "load/workload/profile_table.h"
#include "load/workload/workload.h"

namespace foliot {

struct FluidFlow {
  const ModelProfile* profile;
  double rate;          // requests per second, above 0
  Duration slo;         // max(): none
  uint64_t models = 1;  // as many alike
};

struct FluidEstimate {
  double devices_needed = 0;  // to serve the workload as it is
  // Share of the offered that would be in time, in [0, 1].
  double attainment = 1;
  // All rates times this can just be served; larger batches make it more than
  // devices / devices_needed.
  double rate_scale = 0;
  double rate = 0;  // the rate of the workload times rate_scale
};

// The duration of a batch of any real size from 1 on.
Duration batch_duration(const ModelProfile& profile, double size);
// b*; 0 where even a batch of 1 takes longer than the SLO.
double fluid_batch(const FluidFlow& flow);
FluidEstimate fluid_estimate(const std::vector<FluidFlow>& flows, uint32_t devices);

// The open loops of a workload at their mean rates, per model. Empty if there are
// none: closed loops have no rate of their own, traces change theirs.
std::vector<FluidFlow> fluid_flows(const Workload& workload, const ProfileTable& profiles);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_FLUID_ESTIMATE_H_
