// JobTable: all jobs that are known, and what becomes of each: a state machine, which takes time as an argument. It
// knows no disk: its owner keeps what changed.
//
// Bounded: of `jobs_max` jobs a new one takes the place of the one that ended first; where none has ended it is
// refused.
//
// A job that was running when its process was killed is queued again by recover(), unless it was to be cancelled. One
// that does so `starts_max` times without advancing has failed: it may be what ends the process.
//
// Threading: not thread-safe.
#ifndef FOLIOT_EDGE_JOBS_JOB_TABLE_H_
#define FOLIOT_EDGE_JOBS_JOB_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edge/jobs/job.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

// What a running job has done.
struct JobProgress {
  uint64_t done = 0;
  uint64_t total = 0;
  std::map<std::string, uint64_t> variants{};
};

class JobTable {
 public:
  struct Limits {
    size_t jobs_max = 1000;
    uint32_t starts_max = 5;
    uint32_t webhook_tries_max = 5;
    Duration webhook_wait_first = Duration::seconds(1);  // after a try that failed; doubles with each
  };
  explicit JobTable(const Limits& limits) : limits_(limits) {}

  // What was kept, in the order of numbers, when the process began. Returns those that it changed. REQUIRES: the table
  // is empty.
  std::vector<Job> recover(std::vector<Job> kept, TimePoint now);

  // A queued job as add() would add it, with a number that no other gets, whether it is added or not: what could not be
  // kept may be in the store yet. Errors: kResourceExhausted if no job has ended and there are `jobs_max`.
  Result<Job> admit(const JobRequest& request, std::string id, TimePoint now);
  // Of admit(), once it is kept. Returns the ids of those whose place it takes, which are forgotten.
  std::vector<std::string> add(Job job);

  // The job that has waited longest begins; nullopt: none waits.
  std::optional<Job> begin_next(TimePoint now);
  // What a running job has done. REQUIRES: it is running, here and below.
  void advance(std::string_view id, const JobProgress& progress) { advance(running(id), progress); }
  // The same of a copy.
  static void advance(Job& job, const JobProgress& progress);
  void set_accuracy(std::string_view id, const std::string& model, double accuracy) {
    running(id).accuracies[model] = accuracy;
  }
  void set_bytes(std::string_view id, uint64_t bytes) { running(id).bytes = bytes; }
  // Why it does not advance, or its step; empty: it does.
  void set_waiting(std::string_view id, std::string why);
  // Its run is over: succeeded, cancelled if that was asked, or failed with the status' message.
  Job finish(std::string_view id, const Status& status, TimePoint now);
  // Its run was interrupted for another reason than the job's own: it is queued again.
  Job interrupt(std::string_view id);

  // A queued job has ended with it, a running one is to end. Errors: kNotFound; kAlreadyExists naming its state, if it
  // has ended.
  Result<Job> cancel(std::string_view id, TimePoint now);
  bool is_cancelled(std::string_view id) const;

  // No webhook waits longer than its wait is: a clock that was set back would delay it by as much.
  void mind_clock(TimePoint now);
  // A webhook whose time has come; it stays until webhook_tried().
  std::optional<Job> due_webhook(TimePoint now) const;
  // When the next is due; infinite: none is.
  TimePoint next_webhook() const;
  Job webhook_tried(std::string_view id, const Status& status, TimePoint now);

  std::optional<Job> find(std::string_view id) const;
  std::vector<Job> list() const;  // in the order of numbers
  size_t count(JobState state) const;

 private:
  Job& running(std::string_view id);
  static void end(Job& job, JobState state, TimePoint now);
  static bool may_go(const Job& job);
  // After the last try, which failed.
  Duration wait_of(const JobWebhook& webhook) const;

  Limits limits_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, Job> jobs_;                          // by number
  std::map<std::string, uint64_t, std::less<>> numbers_;  // by id
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_TABLE_H_
