// JobService: the interface between the protocols and jobs.
//
// Reading never waits for a disk or another server. submit() and cancel() answer by `done`, once, on any thread or
// before they return: the change lasts then.
//
// Errors: kInvalidArgument for a request that its kind refuses, naming what is wrong; kNotFound for an id, or a file or
// a model of a request; kAlreadyExists for a job that has ended, or an output that exists; kResourceExhausted at a
// limit or with a full disk; kUnavailable where it may succeed later.
//
// Threading: any.
#ifndef FOLIOT_EDGE_JOBS_JOB_SERVICE_H_
#define FOLIOT_EDGE_JOBS_JOB_SERVICE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edge/jobs/job.h"
#include "foundation/base/status.h"

namespace foliot {

class JobService {
 public:
  using Done = std::function<void(Result<Job>)>;
  virtual ~JobService() = default;
  // Why jobs cannot be read yet: kUnavailable; ok: they can, from here on.
  virtual Status readable() const { return Status(); }
  virtual void submit(JobRequest request, Done done) = 0;
  virtual void cancel(std::string id, Done done) = 0;
  // REQUIRES: readable(), here and below.
  virtual std::optional<Job> find(std::string_view id) const = 0;
  // In the order of submission.
  virtual std::vector<Job> list() const = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_SERVICE_H_
