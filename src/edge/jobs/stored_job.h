// stored_job(): a job as a store has it. One that is damaged is left out where jobs are read, so that the others run
// on, and stays in the store.
#ifndef FOLIOT_EDGE_JOBS_STORED_JOB_H_
#define FOLIOT_EDGE_JOBS_STORED_JOB_H_

#include <string_view>

#include "edge/jobs/job.h"
#include "foundation/base/status.h"

namespace foliot {

// `id`: by which the store has it. Errors: kInvalidArgument naming it, if `json` is no job, or another.
Result<Job> stored_job(std::string_view id, std::string_view json);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_STORED_JOB_H_
