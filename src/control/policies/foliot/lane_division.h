// LaneDivision: whether the EXECs of a device share its lanes, or each takes all of them.
//
// On lanes of its own an EXEC takes less of the device's time, and others begin meanwhile; but it takes several times
// as long, in batches that have to be smaller. Where models have EXECs that others cannot wait for, lanes are a gain
// only if there are enough of them: some for the long EXECs, and the rest for those that have less time. Else all take
// all lanes, and long batches are run in parts (batch_parts.h); but where all lanes together cannot do what is asked,
// and apart would do clearly more of it, they are shared all the same.
//
// That is asked of intervals of each width, of one lane first. Of each model that the device holds it looks at the
// batch, of those that fill in time, that takes the least for each row; a width on which it has not run is expected to
// do well, or it would never be tried. Rates and durations are looked at anew every 100 ms.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_LANE_DIVISION_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_LANE_DIVISION_H_

#include <cstdint>
#include <vector>

#include "control/policies/foliot/board.h"
#include "foundation/base/time.h"

namespace foliot::foliot_policy {

class LaneDivision {
 public:
  explicit LaneDivision(const Board& board) : board_(board) {}

  // Whether EXECs may take fewer lanes of the device than all. False if it has one.
  bool divides(DeviceId device, TimePoint now);

 private:
  struct Asked {
    Duration slo;
    Duration exec;     // of the batch
    Duration slack;    // what its requests can wait for
    double rate = 0;   // of requests for this device
    double value = 0;  // that, by their weight
    double busy = 0;   // intervals
  };
  struct Look {
    TimePoint until;
    TimePoint whole_until;
    bool divides = false;
  };
  // What is asked of a device on intervals of one width. Long are EXECs that requests with much less time than theirs
  // cannot wait for.
  struct Load {
    double intervals = 1;
    double with_long = 0;  // how many are busy with long EXECs
    double with_short = 0;
    double value_long = 0;
    double value_short = 0;
    double value_missed = 0;  // of models of which no request is in time on such an interval
  };

  void look(DeviceId device, Look& own, TimePoint now);
  Load load(DeviceId device, uint32_t width, TimePoint now);
  // False if no request of the model is in time on an interval of this width.
  bool add(DeviceId device, ModelId model, uint32_t width_index, TimePoint now);
  // Whether all requests are in time, for which long EXECs have to leave enough intervals to the others.
  static bool suffices(const Load& load);
  // The part of all requests that is in time, if long EXECs begin wherever an interval is free.
  static double in_time(const Load& load);
  // The part that intervals which are always busy could do.
  static double done(const Load& load);

  const Board& board_;
  std::vector<Look> looks_;  // by device
  std::vector<Asked> asked_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_LANE_DIVISION_H_
