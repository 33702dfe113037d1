// The clairvoyant bound: the most requests of a simulation that any policy could answer
// by their deadline, even one that knows all arrivals beforehand. Unlike the fluid
// estimate (fluid_estimate.h) it accounts for LOADs, memory, bursts and possible
// batches, and no policy exceeds it.
//
// Why it is a bound. Let EXEC, LOAD and memory have prices e(t), l(t) and m(t), none
// negative: Lagrange multipliers of what D devices with P pages each can do at once.
// At every instant t a plan runs at most D EXECs and D LOADs and holds at most D * P
// pages, so
//
//   answers <= answers - price of all that the plan uses + D * integral(e + l + P * m)
//
// and what is left of the first two terms splits into a sum over models, for devices
// are no longer shared. For each model the best plan is bounded in turn: each request
// has a worth, of which no batch has more than its requests together
// (batch_relaxation.h), and stays in memory gather worths (residency_relaxation.h). This
// holds for any prices; a subgradient method looks for those with the lowest bound.
//
// What is relaxed: devices are one pool (a model that is loaded can be executed wherever
// there is time, and pages of all devices are one memory); capacities hold on average
// over prices; models may be in several copies for one stay; where requests to one model
// have several SLOs, deadlines are put off until they are in the order of arrivals;
// the link takes its shortest time to the device and none back. Requests of the warm-up
// need nothing, and at its end any models are resident. Best-effort requests count as
// answered. Faults are left out: they only take away.
//
// Durations are drawn when an action begins, and no policy foresees them. Deadlines are
// held against the fastest (six standard deviations below the mean). Prices are those
// expected of each action when it begins, so the sum that a run pays differs from them
// by a martingale; five of its standard deviations, `allowance`, are part of the bound:
// one run in 3 million may exceed it.
#ifndef FOLIOT_VIRTUAL_BOUNDS_CLAIRVOYANT_BOUND_H_
#define FOLIOT_VIRTUAL_BOUNDS_CLAIRVOYANT_BOUND_H_

#include <cstdint>
#include <functional>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/profile_table.h"
#include "load/workload/workload.h"
#include "virtual/simulation/simulation.h"

namespace foliot {

struct ClairvoyantBound {
  uint64_t offered = 0;   // requests that count, after the warm-up
  uint64_t good = 0;      // of these can be in time at most
  double allowance = 0;   // of these: for the noise of durations
  double exec_price = 0;  // what all EXEC time is worth, in answers: how scarce it is
  double load_price = 0;  // what all LOAD time is worth
  double memory_price = 0;
  Duration measured;

  double attainment() const { return offered == 0 ? 1 : static_cast<double>(good) / static_cast<double>(offered); }
  double goodput() const { return static_cast<double>(good) / measured.to_seconds(); }
};

struct ClairvoyantBoundOptions {
  // Steps of the subgradient method: more make the bound lower.
  uint32_t steps = 160;
  // Of the windows in which prices are constant; zero: a third of the shortest SLO,
  // but not below 2 ms, nor more than 8,192 windows.
  Duration window;
};

// Called with the share of the work that is done, in [0, 1].
using BoundProgress = std::function<void(double share)>;

// Of simulate(options, workload, profiles), whatever options.policy.
// Errors: those of simulate(); also kInvalidArgument for a closed loop, where the
// answers decide when requests come, and none of them is offered without a policy.
Result<ClairvoyantBound> clairvoyant_bound(const SimulationOptions& options, const Workload& workload,
                                           const ProfileTable& profiles, const ClairvoyantBoundOptions& bound = {},
                                           const BoundProgress& progress = {});

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_BOUNDS_CLAIRVOYANT_BOUND_H_
