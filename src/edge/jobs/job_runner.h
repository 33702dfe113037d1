// JobRunner: runs jobs on threads of its own, and keeps what becomes of them: up to `running_max` at a time, the one
// that has waited longest first.
//
//   submit(), cancel() -> keeper thread -> JobStore      (a bounded queue)
//   worker threads: begin, run (JobKind), keep, finish
//   notifier thread: webhooks
//
// A change that the store cannot take now is kept in memory and tried again each second; only a submission is refused
// for it, and removed from the store, which may have it yet. So jobs under way and all else go on while a disk is full.
//
// stop() interrupts what runs, at its next step: it is queued again, and goes on when the next process starts. A
// webhook is sent at least once.
#ifndef FOLIOT_EDGE_JOBS_JOB_RUNNER_H_
#define FOLIOT_EDGE_JOBS_JOB_RUNNER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "edge/jobs/job_kind.h"
#include "edge/jobs/job_service.h"
#include "edge/jobs/job_store.h"
#include "edge/jobs/job_table.h"
#include "edge/jobs/webhook_sender.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/thread.h"

namespace foliot {

struct JobRunnerOptions {
  uint32_t running_max = 1;
  JobTable::Limits limits{};
  Duration store_retry = Duration::seconds(1);  // where the store failed
  // Why a job does not advance is kept, too, after store_retry: for servers that read it from the store.
  bool keeps_waiting = false;
  // What submissions are refused with after stop().
  std::string why_stopped = "the server is shutting down";
  // The wall clock, since 1970; from any thread.
  std::function<TimePoint()> now;
  // Of no two jobs the same, and not to be guessed.
  std::function<std::string()> make_id;
  // Kinds of job that other servers run, and what to do instead of asking this one.
  std::map<std::string, std::string, std::less<>> elsewhere{};
  // A line for operators: what cannot be kept or notified. From any thread.
  std::function<void(const std::string&)> on_failure = [](const std::string&) {};
};

// Threading: submit(), cancel(), find() and list() by any thread, all else by the owner.
class JobRunner final : public JobService {
 public:
  // Reads what the store has. `webhooks` outlives this; null: webhooks are refused. Errors: the store's.
  static Result<std::unique_ptr<JobRunner>> open(JobRunnerOptions options, std::unique_ptr<JobStore> store,
                                                 WebhookSender* webhooks);
  ~JobRunner() override { stop(); }

  // Before start(). It outlives this.
  void add(JobKind& kind) { kinds_[std::string(kind.name())] = &kind; }
  // Once. Until then submissions are refused as kUnavailable, and no job runs. Errors: kResourceExhausted.
  Status start();
  // Returns when no job runs and all threads have ended. Calling it again does nothing.
  void stop();

  void submit(JobRequest request, Done done) override;
  void cancel(std::string id, Done done) override;
  std::optional<Job> find(std::string_view id) const override;
  std::vector<Job> list() const override;

 private:
  static constexpr size_t kChangesMax = 64;
  class Context;
  struct Change {
    std::optional<JobRequest> request{};  // nullopt: cancels `id`
    std::string id{};
    Done done{};
  };

  JobRunner(JobRunnerOptions options, std::unique_ptr<JobStore> store, WebhookSender* webhooks)
      : options_(std::move(options)), webhooks_(webhooks), table_(options_.limits), store_(std::move(store)) {}

  void enqueue(Change change);
  void keep_changes();
  Result<Job> add_job(const JobRequest& request);
  Result<Job> cancel_job(const std::string& id);
  // Keeps the newest state of the job; what fails is reported, and tried again by the keeper.
  void save(const std::string& id);
  Status try_to_save(const std::string& id);
  void keep_progress(const std::string& id, const JobProgress& progress);
  Status put(const Job& job) REQUIRES(store_mutex_);
  void save_again();
  void work();
  void run(const Job& job);
  void notify();

  const JobRunnerOptions options_;
  WebhookSender* const webhooks_;
  std::map<std::string, JobKind*, std::less<>> kinds_;

  mutable Mutex mutex_;
  Condition changed_;  // there may be something to do, or this stops
  JobTable table_ GUARDED_BY(mutex_);
  std::deque<Change> changes_ GUARDED_BY(mutex_);
  std::set<std::string> unsaved_ GUARDED_BY(mutex_);
  bool is_running_ GUARDED_BY(mutex_) = false;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  bool store_failed_ GUARDED_BY(mutex_) = false;  // and that was reported

  Mutex store_mutex_;  // taken before mutex_
  const std::unique_ptr<JobStore> store_ PT_GUARDED_BY(store_mutex_);
  std::vector<Thread> threads_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_JOB_RUNNER_H_
