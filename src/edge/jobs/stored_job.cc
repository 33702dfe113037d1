#include "edge/jobs/stored_job.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/base/escaped_text.h"

namespace foliot {

Result<Job> stored_job(std::string_view id, std::string_view json) {
  Result<Job> job = job_from_json(json);
  if (job.ok() && job->id == id) return job;
  return Status::invalid_argument(
      fmt::format("job {} is damaged, and left out: {}; restore it from a backup, or remove it", in_quotes(id),
                  job.ok() ? fmt::format("it says that it is {}", in_quotes(job->id)) : job.status().message()));
}

}  // namespace foliot
