#include "node/server/job_metrics.h"

#include <fmt/format.h>

namespace foliot {

std::string JobMetrics::text() const {
  return fmt::format(
      "# HELP foliot_jobs_keeper Whether this front end runs the jobs that several share\n"
      "# TYPE foliot_jobs_keeper gauge\n"
      "foliot_jobs_keeper {}\n",
      jobs_.is_keeper() ? 1 : 0);
}

}  // namespace foliot
