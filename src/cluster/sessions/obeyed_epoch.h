// ObeyedEpoch: the highest epoch with which a controller has led that this process obeyed. It obeys none of a lower one
// from then on (cluster/election/election.h).
//
// Threading: one thread.
#ifndef FOLIOT_CLUSTER_SESSIONS_OBEYED_EPOCH_H_
#define FOLIOT_CLUSTER_SESSIONS_OBEYED_EPOCH_H_

#include <cstdint>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

class ObeyedEpoch {
 public:
  // 0: there was no choice of a leader.
  uint64_t value() const { return value_; }
  // A controller leads with this epoch. `obeyed`: where the one is that is obeyed now; null: none is. Errors:
  // kUnavailable with the reason why it is not obeyed.
  Status obey(uint64_t epoch, const std::string* obeyed);

 private:
  uint64_t value_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_OBEYED_EPOCH_H_
