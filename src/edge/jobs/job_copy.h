// JobCopy: what a server knows of the jobs that it shares: of each the newest revision that it has read, or written.
// Clients are shown these, so that reading never waits for the store, and shows nothing that is not kept.
//
// Revisions grow with every change of any job. Where a job is newer here than in what was read, it stays: the keeper's
// own writes arrive before they are read.
//
// Threading: any.
#ifndef FOLIOT_EDGE_JOBS_JOB_COPY_H_
#define FOLIOT_EDGE_JOBS_JOB_COPY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edge/jobs/job.h"
#include "foundation/base/mutex.h"

namespace foliot {

struct RevisedJob {
  Job job;
  uint64_t revision = 0;
};

class JobCopy {
 public:
  void put(RevisedJob one);
  void remove(std::string_view id);
  // Of all jobs, as they were when `last` was the last revision: what is not among them is gone, and what is here of
  // the same or an older revision is replaced, since a store that lost something has older ones.
  void replace(std::vector<RevisedJob> all, uint64_t last);
  // Forgets those that are not among `ids`, which the store had when `last` was the last revision.
  void keep_only(const std::set<std::string, std::less<>>& ids, uint64_t last);

  std::optional<Job> find(std::string_view id) const;
  std::vector<Job> list() const;  // in the order of numbers
  size_t size() const;

 private:
  using Place = std::pair<uint64_t, std::string>;  // number and id
  void put_locked(RevisedJob one) REQUIRES(mutex_);
  void remove_locked(std::string_view id) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<Place, RevisedJob> jobs_ GUARDED_BY(mutex_);
  std::map<std::string, uint64_t, std::less<>> numbers_ GUARDED_BY(mutex_);  // by id
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_COPY_H_
