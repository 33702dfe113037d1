// JobViewer: whose jobs a caller may see, and which it may submit.
//
// Threading: any.
#ifndef FOLIOT_EDGE_REQUESTS_JOB_VIEWER_H_
#define FOLIOT_EDGE_REQUESTS_JOB_VIEWER_H_

#include <optional>
#include <string>
#include <string_view>

#include "edge/jobs/job.h"
#include "edge/jobs/job_service.h"
#include "edge/requests/gate.h"
#include "foundation/access/scope.h"
#include "foundation/base/status.h"

namespace foliot {

class JobViewer {
 public:
  // `authorization`: the header of that name, of a call that has the scope `jobs`.
  JobViewer(const Gate& gate, std::string_view authorization);

  // Its name; empty: without keys.
  const std::string& key() const { return key_; }
  bool sees(const Job& job) const { return sees_all_ || job.owner == key_; }
  // Errors: kNotFound, as if there were none, for those of others.
  Result<Job> find(const JobService& jobs, std::string_view id) const;

 private:
  std::string key_;
  bool sees_all_;
};

// That a submission needs besides `jobs`; nullopt: none.
std::optional<Scope> scope_of_job_kind(std::string_view kind);

// Whether jobs can be shown and changed. Errors: kUnimplemented if none are kept (null), JobService's.
Status check_served(const JobService* jobs);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_JOB_VIEWER_H_
