// LaneDivision: whether the EXECs of a device share its lanes, or each takes all of them.
//
// On lanes of its own an EXEC takes less of the device's time, and others begin meanwhile; but it takes several times
// as long, in batches that have to be smaller. Where models have EXECs that others cannot wait for, lanes are a gain
// only if there are enough of them: some for the long EXECs, and the rest for those that have less time. Else all take
// all lanes, and long batches are run in parts (batch_parts.h).
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
    Duration exec;    // of the batch
    Duration slack;   // what its requests can wait for
    double rate = 0;  // of requests for this device
    double busy = 0;  // intervals
  };
  struct Look {
    TimePoint until;
    TimePoint whole_until;
    bool divides = false;
  };
  // Whether it could be divided now.
  bool look(DeviceId device, TimePoint now);
  // Whether it could into so many intervals of this width.
  bool divides_into(DeviceId device, uint32_t intervals, uint32_t width_index, TimePoint now);
  // False if no request of the model is in time on an interval of this width.
  bool add(DeviceId device, ModelId model, uint32_t width_index, TimePoint now);
  // How many intervals are busy with EXECs that requests with much less time than theirs cannot wait for; and with
  // others.
  struct Busy {
    double with_long = 0;
    double with_short = 0;
  };
  Busy busy();

  const Board& board_;
  std::vector<Look> looks_;  // by device
  std::vector<Asked> asked_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_LANE_DIVISION_H_
