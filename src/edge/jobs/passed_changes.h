// PassedChanges: changes of this server's clients that another server does: first to be passed on, then to be
// answered.
//
// Bounded: kWaitingMax. Each is finished once: its `done` is called, on the thread that finishes it.
//
// Threading: any.
#ifndef FOLIOT_EDGE_JOBS_PASSED_CHANGES_H_
#define FOLIOT_EDGE_JOBS_PASSED_CHANGES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "edge/jobs/job_service.h"
#include "edge/jobs/passed_change.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

class PassedChanges {
 public:
  static constexpr size_t kWaitingMax = 64;

  struct Change {
    std::string id;
    std::string json;
    bool is_passed = false;
  };

  // Errors: kUnavailable at kWaitingMax, and `done` is not called.
  Status add(const PassedChange& change, JobService::Done done, TimePoint give_up);
  bool is_empty() const;
  bool has_unpassed() const;

  std::vector<Change> unpassed() const;
  std::vector<Change> passed() const;
  // Those to be given up by now.
  std::vector<Change> overdue(TimePoint now) const;
  std::vector<Change> all() const;

  // Nothing, if it was finished, here and below.
  void set_passed(const std::string& id);
  void finish(const std::string& id, Result<Job> answer);

 private:
  struct Waiting {
    std::string json;
    JobService::Done done;
    TimePoint give_up{};
    bool is_passed = false;
  };
  std::vector<Change> those(const std::function<bool(const Waiting&)>& condition) const;

  mutable Mutex mutex_;
  std::map<std::string, Waiting> waiting_ GUARDED_BY(mutex_);  // by id
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_PASSED_CHANGES_H_
