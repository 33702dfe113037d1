#include "foundation/process/background.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace foliot {

void go_to_background() {
  const sched_param priority{};
  ::sched_setscheduler(0, SCHED_IDLE, &priority);
  ::setpriority(PRIO_PROCESS, 0, 19);
  constexpr int kThisProcess = 1, kIdleClass = 3 << 13;  // of <linux/ioprio.h>
  ::syscall(SYS_ioprio_set, kThisProcess, 0, kIdleClass);
}

}  // namespace foliot
