// BlockingCost: the number of future requests that an EXEC would make late.
//
// A device runs one EXEC at a time and never interrupts it. A request whose deadline leaves
// it a slack of s (SLO less its own EXEC and margin) is lost if it comes in the
// first L - s of an EXEC that takes L. So an EXEC costs sum(rate * weight * max(0, L - s))
// over the models that the device holds: nothing where every deadline is longer than every
// EXEC, and often more than it serves where ResNet-152 stands beside models with 8 ms.
//
// Models that other devices hold too cost nothing as long as enough of those will be free in
// time. Rates and slacks are looked at anew every 100 ms; only models with short deadlines
// are looked at (Board::tight).
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_BLOCKING_COST_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_BLOCKING_COST_H_

#include <cstdint>
#include <vector>

#include "control/policies/foliot/board.h"
#include "foundation/base/time.h"

namespace foliot::foliot_policy {

class BlockingCost {
 public:
  explicit BlockingCost(const Board& board) : board_(board) {}

  // Requests, each counted with its model's weight, that would come from `now` on and be late
  // for an EXEC that keeps the device busy for so long from then on.
  // Only of models with an SLO of at most `slo_max`: what has about as much time as the EXEC's
  // own requests is not rather served than they.
  double lost(DeviceId device, Duration busy, Duration slo_max, TimePoint now);

 private:
  // Where a request of one of the models begins to be lost, and how many each second are.
  struct Knee {
    Duration slack;
    Duration slo;
    double rate;
  };
  struct Curve {
    std::vector<Knee> knees;  // ascending by slack
    double at(Duration busy, Duration slo_max) const;
    void finish();
  };
  struct Curves {
    TimePoint until;
    Curve alone;    // of models that only this device holds
    Curve shared;   // of the others
    ModelId model;  // of the others, the one that the fewest hold
    double share = 0;
  };
  void look(DeviceId device, TimePoint now, Curves& curves) const;
  bool others_are_quick(DeviceId device, const Curves& curves, TimePoint now) const;

  const Board& board_;
  std::vector<Curves> curves_;  // by device
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_BLOCKING_COST_H_
