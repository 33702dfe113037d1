// BestEffortRoom: the longest time for which an EXEC of requests without a deadline may
// keep a device busy, considering what is yet to come.
//
// What arrives meanwhile for the models that the device holds must still be met by one
// batch: by this device, or, where others hold those models too and enough of them will
// be free in time, by those. Enough is what the requests with a deadline take, and some
// more. So a few devices of many stay quick, never the same for long, and the others
// run batches that none of them could run were it alone.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_BEST_EFFORT_ROOM_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_BEST_EFFORT_ROOM_H_

#include <cstdint>
#include <vector>

#include "control/policies/foliot/board.h"
#include "foundation/base/time.h"

namespace foliot::foliot_policy {

class BestEffortRoom {
 public:
  explicit BestEffortRoom(const Board& board) : board_(board) {}

  // The longest EXEC of several rows without a deadline; max() where nothing limits it.
  Duration longest(DeviceId device, TimePoint now);

 private:
  // What follows from rates and SLOs; looked at anew now and then.
  struct Limit {
    TimePoint until;
    Duration alone = Duration::max();     // if no other device helps
    Duration together = Duration::max();  // if the holders of `model` do
    ModelId model;                        // of those held elsewhere too, by the fewest
    bool shared = false;                  // there is such a model
    double need = 0;                      // devices that the requests with a deadline take
  };
  Limit look(DeviceId device, TimePoint now) const;
  void look_at(DeviceId device, ModelId model, TimePoint now, Limit& limit) const;
  bool others_stay_quick(DeviceId device, const Limit& limit, TimePoint now) const;

  const Board& board_;
  std::vector<Limit> limits_;  // by device
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_BEST_EFFORT_ROOM_H_
