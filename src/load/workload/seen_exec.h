// SeenExec: an EXEC that a real device did, as a simulated one may repeat it.
#ifndef FOLIOT_LOAD_WORKLOAD_SEEN_EXEC_H_
#define FOLIOT_LOAD_WORKLOAD_SEEN_EXEC_H_

#include "foundation/base/time.h"

namespace foliot {

struct SeenExec {
  Duration at;        // when it began, from the start of virtual time
  double factor = 1;  // how many times as long as its model's profile says it took; above 0
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_SEEN_EXEC_H_
