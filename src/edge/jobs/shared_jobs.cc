#include "edge/jobs/shared_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "edge/jobs/redis_job_lease.h"
#include "edge/jobs/redis_job_store.h"

namespace foliot {
namespace {

// Beside requests that clients wait for; the lease is not: it must be renewed in time.
constexpr int kExchangeNice = 5;

Status nothing_done(std::string_view why) {
  return Status::unavailable(fmt::format("{}; nothing was done: try again later", why));
}
Status may_be_done(std::string_view why) {
  return Status::unavailable(fmt::format("{}; it may be done yet: look at the list of jobs before you try again", why));
}

}  // namespace

SharedJobs::SharedJobs(SharedJobsOptions options)
    : options_(std::move(options)),
      exchange_(options_.redis),
      lease_(std::make_unique<RedisJobLease>(options_.redis, options_.name), options_.times, options_.make_id,
             options_.now, [this] {
               // Not between a look at the lease and the wait for its change.
               { const MutexLock lock(mutex_); }
               changed_.notify_all();
             }) {}

Status SharedJobs::start(OpenRunner open_runner) {
  open_runner_ = std::move(open_runner);
  {
    const MutexLock lock(mutex_);
    is_running_ = true;
  }
  FOLIOT_ASSIGN_OR_RETURN(keeping_thread_, Thread::start({.name = "job-keeping"}, [this] { keep(); }));
  FOLIOT_ASSIGN_OR_RETURN(exchange_thread_,
                          Thread::start({.name = "job-exchange", .nice = kExchangeNice}, [this] { exchange(); }));
  return Status();
}

void SharedJobs::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  keeping_thread_.join();
  {
    const MutexLock lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  exchange_thread_.join();
  lease_.stop();
}

// ---- Clients

Status SharedJobs::readable() const {
  const MutexLock lock(mutex_);
  return unreadable_;
}

void SharedJobs::submit(JobRequest request, Done done) {
  change({.id = options_.make_id(), .request = std::move(request)}, std::move(done));
}

void SharedJobs::cancel(std::string id, Done done) {
  change({.id = options_.make_id(), .job = std::move(id)}, std::move(done));
}

void SharedJobs::change(PassedChange change, Done done) {
  Status refused;
  std::shared_ptr<JobRunner> runner;
  {
    const MutexLock lock(mutex_);
    if (!is_running_ || is_stopping_) {
      refused = Status::unavailable(is_stopping_ ? "the server is shutting down" : "the server is starting");
    } else if (runner_ != nullptr) {
      runner = runner_;
    } else {
      refused = waiting_.add(change, done, options_.now() + options_.answer_wait);
      if (refused.ok()) {
        changed_.notify_all();
        return;
      }
    }
  }
  if (runner == nullptr) return done(refused);
  if (change.request) return runner->submit(std::move(*change.request), std::move(done));
  runner->cancel(std::move(change.job), std::move(done));
}

bool SharedJobs::is_keeper() const {
  const MutexLock lock(mutex_);
  return runner_ != nullptr;
}

std::vector<Job> SharedJobs::list_running() const {
  std::shared_ptr<JobRunner> runner;
  {
    const MutexLock lock(mutex_);
    runner = runner_;
  }
  return runner == nullptr ? copy_.list() : runner->list();
}

// ---- Keeping thread

void SharedJobs::keep() {
  MutexLock lock(mutex_);
  while (!is_stopping_) {
    const LeaseThread::Kept kept = lease_.kept();
    const Duration left = kept.until - options_.now();
    const bool keeps = left > Duration();
    if (runner_ != nullptr && (!keeps || kept.token != token_)) {
      end_keeping();
    } else if (runner_ == nullptr && keeps) {
      begin_keeping(kept.token);
    } else if (keeps) {
      changed_.wait_for(mutex_, left);
    } else {
      changed_.wait(mutex_);
    }
  }
  end_keeping();
}

void SharedJobs::begin_keeping(const std::string& token) {
  mutex_.unlock();
  Result<std::unique_ptr<JobRunner>> opened = open_runner_(std::make_unique<RedisJobStore>(
      options_.redis, token,
      RedisJobStore::Reports{.on_put =
                                 [this](const Job& job, uint64_t revision) {
                                   copy_.put({job, revision});
                                 },
                             .on_removed = [this](const std::string& id) { copy_.remove(id); },
                             .on_damaged = options_.on_failure}));
  Status status = opened.status();
  if (status.ok()) status = (*opened)->start();
  if (status.ok()) {
    options_.on_event(fmt::format("this front end keeps the jobs of {} from now on", options_.redis.text()));
    mutex_.lock();
    runner_ = std::move(opened).value();
    token_ = token;
    return;
  }
  options_.on_failure(fmt::format("jobs cannot run here: {}", status.message()));
  lease_.yield(options_.pause);
  mutex_.lock();
}

void SharedJobs::end_keeping() {
  std::shared_ptr<JobRunner> runner = std::move(runner_);
  if (runner == nullptr) return;
  const bool is_stopping = is_stopping_;
  runner_.reset();
  token_.clear();
  mutex_.unlock();
  if (!is_stopping) {
    options_.on_failure(
        fmt::format("this front end does not keep the jobs of {} any more: another does, or there was "
                    "no answer in time; what ran here goes on from what was kept",
                    options_.redis.text()));
  }
  runner->stop();
  runner.reset();
  mutex_.lock();
}

// ---- Exchange thread

void SharedJobs::exchange() {
  MutexLock lock(mutex_);
  while (!has_ended_) {
    lock.unlock();
    const Status status = do_round();
    report(status);
    lock.lock();
    const bool is_quick = status.ok() && (runner_ != nullptr || !waiting_.is_empty());
    changed_.wait_for(mutex_, is_quick ? options_.take_interval : options_.read_interval, [&]() REQUIRES(mutex_) {
      return has_ended_ || (status.ok() && (!answers_.empty() || waiting_.has_unpassed()));
    });
  }
  lock.unlock();
  end_exchange();
}

// The runner has answered all that it was given.
void SharedJobs::end_exchange() {
  if (has_met_) [[maybe_unused]]
    const Status status = send_answers();
  give_up(waiting_.all(), "the server is shutting down");
}

Status SharedJobs::do_round() {
  Answers answers;
  const auto exchange = [&] {
    FOLIOT_RETURN_IF_ERROR(exchange_.connect());
    FOLIOT_RETURN_IF_ERROR(meet());
    if (!has_lease_thread_) FOLIOT_RETURN_IF_ERROR(lease_.start());
    has_lease_thread_ = true;
    FOLIOT_RETURN_IF_ERROR(take_changes());
    FOLIOT_RETURN_IF_ERROR(send_answers());
    FOLIOT_RETURN_IF_ERROR(pass_changes());
    FOLIOT_RETURN_IF_ERROR(fetch_answers(answers));
    // After these: a client that was answered sees the job.
    return read_news();
  };
  Status status = exchange();
  for (auto& [id, answer] : answers) waiting_.finish(id, std::move(answer));
  if (!status.ok()) {
    must_read_all_ = true;
    refuse_unpassed(status);
  }
  if (const auto overdue = waiting_.overdue(options_.now()); !overdue.empty()) {
    const std::string holder = lease_.holder();
    give_up(overdue, holder.empty() ? "no front end keeps the jobs now"
                                    : fmt::format("'{}', which keeps the jobs, did not answer", holder));
  }
  return status;
}

Status SharedJobs::meet() {
  if (has_met_) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const std::string folder, exchange_.agree_on_folder(options_.folder_mark));
  if (folder != options_.folder_mark) {
    return Status::invalid_argument(
        fmt::format("--jobs: is not the folder of the other front ends that keep jobs in {}: all must see one folder, "
                    "under any path; or give --jobs-store another database",
                    options_.redis.text()));
  }
  FOLIOT_RETURN_IF_ERROR(read_all());
  if (const auto is_persistent = exchange_.is_persistent(); is_persistent.ok() && *is_persistent == false) {
    options_.on_failure(
        fmt::format("{} keeps jobs in memory alone, and they are gone when it ends: set `appendonly "
                    "yes` and `appendfsync always` there",
                    options_.redis.text()));
  }
  has_met_ = true;
  return Status();
}

// Each once: it is read again after each loss of the connection.
void SharedJobs::note_damaged(const RedisJobExchange::News& news) {
  for (const std::string& what : news.damaged) {
    if (damaged_.size() < kDamagedMax && damaged_.insert(what).second) {
      options_.on_failure(fmt::format("{}, {}", options_.redis.text(), what));
    }
  }
}

Status SharedJobs::read_all() {
  std::vector<RevisedJob> all;
  uint64_t last = 0;
  for (uint64_t since = 0;;) {
    FOLIOT_ASSIGN_OR_RETURN(RedisJobExchange::News news, exchange_.read(since));
    // What changes meanwhile is read next time.
    if (since == 0) last = news.last;
    note_damaged(news);
    since = news.read;
    for (RevisedJob& one : news.changed) all.push_back(std::move(one));
    if (news.is_all) break;
  }
  // Where Redis has less than was read of it, it has lost something: nothing here is newer.
  copy_.replace(std::move(all), last < revision_ ? std::numeric_limits<uint64_t>::max() : last);
  revision_ = last;
  must_read_all_ = false;
  const MutexLock lock(mutex_);
  unreadable_ = Status();
  return Status();
}

Status SharedJobs::read_news() {
  while (!must_read_all_) {
    FOLIOT_ASSIGN_OR_RETURN(RedisJobExchange::News news, exchange_.read(revision_));
    if (news.last < revision_) break;  // it has lost something
    note_damaged(news);
    revision_ = news.read;
    for (RevisedJob& one : news.changed) copy_.put(std::move(one));
    if (!news.is_all) continue;
    revision_ = news.last;
    if (copy_.size() == news.jobs) return Status();
    FOLIOT_ASSIGN_OR_RETURN(const RedisJobExchange::Ids ids, exchange_.read_ids());
    copy_.keep_only(ids.ids, ids.last);
    return Status();
  }
  return read_all();
}

Status SharedJobs::take_changes() {
  std::shared_ptr<JobRunner> runner;
  std::string token;
  {
    const MutexLock lock(mutex_);
    runner = runner_;
    token = token_;
  }
  if (runner == nullptr) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::string> taken, exchange_.take(token, RedisJobExchange::kPassedMax));
  for (const std::string& json : taken) {
    Result<PassedChange> change = passed_change_from_json(json);
    if (!change.ok()) {
      options_.on_failure(fmt::format("{}: {}", options_.redis.text(), change.status().message()));
      continue;
    }
    JobService::Done done = [this, id = change->id](Result<Job> answer) {
      const MutexLock lock(mutex_);
      answers_.emplace_back(id, std::move(answer));
      changed_.notify_all();
    };
    if (change->request) {
      runner->submit(std::move(*change->request), std::move(done));
    } else {
      runner->cancel(std::move(change->job), std::move(done));
    }
  }
  return Status();
}

Status SharedJobs::send_answers() {
  Answers answers;
  {
    const MutexLock lock(mutex_);
    answers.swap(answers_);
  }
  // What cannot be sent is dropped: its client gets an error that it may be done.
  for (const auto& [id, answer] : answers) FOLIOT_RETURN_IF_ERROR(exchange_.answer(id, answer_json(answer)));
  return Status();
}

Status SharedJobs::pass_changes() {
  for (const PassedChanges::Change& change : waiting_.unpassed()) {
    const Result<bool> passed = exchange_.pass(change.json);
    if (!passed.ok()) {
      waiting_.finish(change.id, may_be_done(passed.status().message()));
      return passed.status();
    }
    if (*passed) {
      waiting_.set_passed(change.id);
    } else {
      waiting_.finish(change.id, Status::unavailable(
                                     fmt::format("{} submissions and cancellations of all front ends wait, the limit",
                                                 RedisJobExchange::kPassedMax)));
    }
  }
  return Status();
}

Status SharedJobs::fetch_answers(Answers& answers) {
  std::vector<std::string> ids;
  for (PassedChanges::Change& change : waiting_.passed()) ids.push_back(std::move(change.id));
  if (ids.empty()) return Status();
  FOLIOT_ASSIGN_OR_RETURN(const auto found, exchange_.answers(ids));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (found[i]) answers.emplace_back(ids[i], answer_from_json(*found[i]));
  }
  return Status();
}

void SharedJobs::refuse_unpassed(const Status& why) {
  for (const PassedChanges::Change& change : waiting_.unpassed()) {
    waiting_.finish(change.id, nothing_done(fmt::format("jobs cannot be changed now: {}", why.message())));
  }
}

void SharedJobs::give_up(const std::vector<PassedChanges::Change>& changes, const std::string& why) {
  bool is_answered = has_met_;
  for (const PassedChanges::Change& change : changes) {
    bool is_undone = !change.is_passed;
    if (change.is_passed && is_answered) {
      const Result<bool> withdrawn = exchange_.withdraw(change.json);
      is_answered = withdrawn.ok();
      is_undone = withdrawn.ok() && *withdrawn;
    }
    waiting_.finish(change.id, is_undone ? nothing_done(why) : may_be_done(why));
  }
}

void SharedJobs::report(const Status& status) {
  if (status.ok() && has_failed_) options_.on_event(fmt::format("{} answers again", options_.redis.text()));
  if (!status.ok() && !has_failed_) {
    options_.on_failure(fmt::format("jobs {}, and cannot be changed: {}",
                                    has_met_ ? "are shown as they were last read" : "cannot be read yet",
                                    status.message()));
  }
  has_failed_ = !status.ok();
  if (status.ok()) return;
  const MutexLock lock(mutex_);
  if (!unreadable_.ok())
    unreadable_ = Status::unavailable(fmt::format("jobs cannot be read yet: {}", status.message()));
}

}  // namespace foliot
