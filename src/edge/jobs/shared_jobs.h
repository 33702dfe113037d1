// SharedJobs: jobs that several servers share through Redis. Each answers every call; one at a time, the keeper, runs
// the jobs.
//
//   lease thread      takes and renews the lease                                       (LeaseThread)
//   keeping thread    begins a JobRunner when this server has the lease, and stops it when it ends
//   exchange thread   reads what changed; passes changes of clients to the keeper, and answers; of the keeper: takes
//                     these from all servers, and gives them to its runner
//
// Clients are shown what Redis has (JobCopy), at the keeper, too: nothing that a loss of the lease would take back.
// Where Redis does not answer, reading goes on, and changes are refused.
//
// A change that the keeper has not taken within `answer_wait` is withdrawn, and refused. One that it has taken, and not
// answered, may be done or not: its error says so.
//
// Bounded: PassedChanges::kWaitingMax changes wait in a server, RedisJobExchange::kPassedMax in Redis, and JobRunner's
// in the keeper; beyond that they are refused as kUnavailable.
#ifndef FOLIOT_EDGE_JOBS_SHARED_JOBS_H_
#define FOLIOT_EDGE_JOBS_SHARED_JOBS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edge/jobs/job_copy.h"
#include "edge/jobs/job_runner.h"
#include "edge/jobs/job_service.h"
#include "edge/jobs/lease_thread.h"
#include "edge/jobs/passed_change.h"
#include "edge/jobs/passed_changes.h"
#include "edge/jobs/redis_job_exchange.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/platform/thread.h"

namespace foliot {

struct SharedJobsOptions {
  RedisAddress redis;
  std::string name;         // of this server, for operators
  std::string folder_mark;  // of the folder of jobs (folder_mark.h), which all must share
  JobKeepingTimes times{};
  Duration read_interval = Duration::milliseconds(200);
  Duration take_interval = Duration::milliseconds(100);  // of the keeper, and of a server that waits for it
  Duration answer_wait = Duration::seconds(15);          // longer than it takes until another keeps the jobs
  Duration pause = Duration::seconds(10);                // after a runner could not begin here
  std::function<TimePoint()> now;                        // monotonic; any thread
  std::function<std::string()> make_id;                  // of no two calls the same, and not to be guessed; any thread
  // Lines for operators, from any thread: what happens, and what is wrong.
  std::function<void(const std::string&)> on_event = [](const std::string&) {};
  std::function<void(const std::string&)> on_failure = [](const std::string&) {};
};

class SharedJobs final : public JobService {
 public:
  // Opens a runner over this store, with its kinds, not started.
  using OpenRunner = std::function<Result<std::unique_ptr<JobRunner>>(std::unique_ptr<JobStore> store)>;

  explicit SharedJobs(SharedJobsOptions options);
  ~SharedJobs() override { stop(); }

  // Reads the jobs once, before start(). Errors: kUnavailable where Redis does not answer, and jobs are shared once it
  // does; kInvalidArgument if they are of a newer version, or in another folder.
  Status connect() { return meet(); }
  // Once. Until then changes are refused. Errors: kResourceExhausted.
  Status start(OpenRunner open_runner);
  // What runs is interrupted, and goes on at another server. Calling it again does nothing.
  void stop();

  Status readable() const override;
  void submit(JobRequest request, Done done) override;
  void cancel(std::string id, Done done) override;
  std::optional<Job> find(std::string_view id) const override { return copy_.find(id); }
  std::vector<Job> list() const override { return copy_.list(); }

  // Whether this server runs the jobs. Any thread.
  bool is_keeper() const;
  // All jobs as the runner has them, for its kinds: newer than list(). Any thread.
  std::vector<Job> list_running() const;

 private:
  void change(PassedChange change, Done done);
  // ---- Keeping thread
  void keep();
  void begin_keeping(const std::string& token) REQUIRES(mutex_);
  void end_keeping() REQUIRES(mutex_);
  // ---- Exchange thread; and, but for the first two, connect()
  void exchange();
  void end_exchange();
  // All of what follows, once.
  Status do_round();
  // Nothing, once it was done.
  Status meet();
  void note_damaged(const RedisJobExchange::News& news);
  Status read_news();
  Status read_all();
  Status take_changes();
  Status send_answers();
  Status pass_changes();
  using Answers = std::vector<std::pair<std::string, Result<Job>>>;  // by id of the change
  Status fetch_answers(Answers& answers);
  void refuse_unpassed(const Status& why);
  // Withdraws them from Redis, while that answers.
  void give_up(const std::vector<PassedChanges::Change>& changes, const std::string& why);
  void report(const Status& status);

  const SharedJobsOptions options_;
  OpenRunner open_runner_;
  JobCopy copy_;
  PassedChanges waiting_;

  mutable Mutex mutex_;
  Condition changed_;
  bool is_running_ GUARDED_BY(mutex_) = false;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  bool has_ended_ GUARDED_BY(mutex_) = false;             // no runner follows
  std::shared_ptr<JobRunner> runner_ GUARDED_BY(mutex_);  // null: this server does not keep the jobs
  std::string token_ GUARDED_BY(mutex_);                  // of the runner
  std::vector<std::pair<std::string, Result<Job>>> answers_
      GUARDED_BY(mutex_);  // of changes that the runner was given, by id
  Status unreadable_ GUARDED_BY(mutex_) = Status::unavailable("jobs were not read yet: the server is starting");

  RedisJobExchange exchange_;  // of the exchange thread, as what follows
  uint64_t revision_ = 0;      // up to which all was read
  bool must_read_all_ = true;
  static constexpr size_t kDamagedMax = 100;  // that are reported
  std::set<std::string> damaged_;             // that were
  bool has_met_ = false;
  bool has_failed_ = false;  // and that was reported
  bool has_lease_thread_ = false;

  LeaseThread lease_;
  Thread keeping_thread_;
  Thread exchange_thread_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_SHARED_JOBS_H_
