// PassedChange: a submission or a cancellation that a server passes on to the one that keeps the jobs, and its answer,
// both as JSON.
#ifndef FOLIOT_EDGE_JOBS_PASSED_CHANGE_H_
#define FOLIOT_EDGE_JOBS_PASSED_CHANGE_H_

#include <optional>
#include <string>
#include <string_view>

#include "edge/jobs/job.h"
#include "foundation/base/status.h"

namespace foliot {

struct PassedChange {
  std::string id;                       // of no two changes the same
  std::optional<JobRequest> request{};  // nullopt: cancels `job`
  std::string job{};
};

std::string to_json(const PassedChange& change);
// Errors: kInvalidArgument naming what is wrong, here and below.
Result<PassedChange> passed_change_from_json(std::string_view json);

// What became of a change.
std::string answer_json(const Result<Job>& answer);
// An answer that is none is kInternal.
Result<Job> answer_from_json(std::string_view json);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_PASSED_CHANGE_H_
