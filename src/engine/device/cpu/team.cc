#include "engine/device/cpu/team.h"

#include <omp.h>
#include <sched.h>

#include "foundation/base/check.h"

namespace foliot {

void form_team(std::span<const uint32_t> cores) {
  FOLIOT_CHECK(!cores.empty());
#pragma omp parallel num_threads(static_cast <int>(cores.size()))
  {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cores[static_cast<size_t>(omp_get_thread_num())], &own);
    // Of the calling thread alone; it can only fail where a control group changed meanwhile.
    (void)sched_setaffinity(0, sizeof(own), &own);
  }
}

}  // namespace foliot
