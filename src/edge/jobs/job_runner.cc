#include "edge/jobs/job_runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// Beside requests that clients wait for.
constexpr int kJobNice = 5;

}  // namespace

class JobRunner::Context final : public JobContext {
 public:
  Context(JobRunner& runner, std::string id) : runner_(runner), id_(std::move(id)) {}

  bool is_over() const override {
    const MutexLock lock(runner_.mutex_);
    return ended();
  }
  bool is_cancelled() const override {
    const MutexLock lock(runner_.mutex_);
    return runner_.table_.is_cancelled(id_);
  }
  void keep(uint64_t done, uint64_t total, const std::map<std::string, uint64_t>& variants) override {
    runner_.keep_progress(id_, {.done = done, .total = total, .variants = variants});
  }
  void keep_accuracy(const std::string& model, double accuracy) override {
    const MutexLock lock(runner_.mutex_);
    runner_.table_.set_accuracy(id_, model, accuracy);
  }
  void keep_bytes(uint64_t bytes) override {
    const MutexLock lock(runner_.mutex_);
    runner_.table_.set_bytes(id_, bytes);
  }
  void set_waiting(std::string why) override {
    const MutexLock lock(runner_.mutex_);
    if (runner_.options_.keeps_waiting && runner_.table_.find(id_)->waiting != why) {
      runner_.unsaved_.insert(id_);
      runner_.changed_.notify_all();
    }
    runner_.table_.set_waiting(id_, std::move(why));
  }
  void wait(Duration duration) override {
    MutexLock lock(runner_.mutex_);
    runner_.changed_.wait_for(runner_.mutex_, duration, [this]() REQUIRES(runner_.mutex_) { return ended(); });
  }

 private:
  bool ended() const REQUIRES(runner_.mutex_) { return runner_.is_stopping_ || runner_.table_.is_cancelled(id_); }

  JobRunner& runner_;
  const std::string id_;
};

Result<std::unique_ptr<JobRunner>> JobRunner::open(JobRunnerOptions options, std::unique_ptr<JobStore> store,
                                                   WebhookSender* webhooks) {
  FOLIOT_ASSIGN_OR_RETURN(std::vector<Job> kept, store->read());
  std::unique_ptr<JobRunner> runner(new JobRunner(std::move(options), std::move(store), webhooks));
  {
    const MutexLock lock(runner->mutex_);
    kept = runner->table_.recover(std::move(kept), runner->options_.now());
  }
  // What cannot be kept now is tried again: a full disk does not keep the server from starting.
  for (const Job& job : kept) runner->save(job.id);
  return runner;
}

Status JobRunner::start() {
  {
    const MutexLock lock(mutex_);
    is_running_ = true;
  }
  const auto start = [this](const std::string& name, void (JobRunner::*body)()) {
    FOLIOT_ASSIGN_OR_RETURN(Thread thread,
                            Thread::start({.name = name, .nice = kJobNice}, [this, body] { (this->*body)(); }));
    threads_.push_back(std::move(thread));
    return Status();
  };
  FOLIOT_RETURN_IF_ERROR(start("job-keeper", &JobRunner::keep_changes));
  FOLIOT_RETURN_IF_ERROR(start("job-notifier", &JobRunner::notify));
  for (uint32_t i = 0; i < options_.running_max; ++i) FOLIOT_RETURN_IF_ERROR(start("job", &JobRunner::work));
  return Status();
}

void JobRunner::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  threads_.clear();  // joins
}

// ---- Clients

void JobRunner::submit(JobRequest request, Done done) {
  enqueue({.request = std::move(request), .done = std::move(done)});
}

void JobRunner::cancel(std::string id, Done done) { enqueue({.id = std::move(id), .done = std::move(done)}); }

void JobRunner::enqueue(Change change) {
  Status refused;
  {
    const MutexLock lock(mutex_);
    if (!is_running_ || is_stopping_) {
      refused = Status::unavailable(is_stopping_ ? options_.why_stopped : "the server is starting");
    } else if (changes_.size() >= kChangesMax) {
      refused = Status::unavailable(fmt::format("{} submissions and cancellations wait, the limit", changes_.size()));
    } else {
      changes_.push_back(std::move(change));
      changed_.notify_all();
      return;
    }
  }
  change.done(refused);
}

std::optional<Job> JobRunner::find(std::string_view id) const {
  const MutexLock lock(mutex_);
  return table_.find(id);
}

std::vector<Job> JobRunner::list() const {
  const MutexLock lock(mutex_);
  return table_.list();
}

// ---- The keeper

void JobRunner::keep_changes() {
  MutexLock lock(mutex_);
  while (true) {
    const auto is_due = [this]() REQUIRES(mutex_) { return is_stopping_ || !changes_.empty(); };
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return is_due() || !unsaved_.empty(); });
    // What could not be kept is tried again, and no sooner.
    if (!is_due()) changed_.wait_for(mutex_, options_.store_retry, is_due);
    if (!changes_.empty()) {
      Change change = std::move(changes_.front());
      changes_.pop_front();
      const bool stops = is_stopping_;
      lock.unlock();
      change.done(stops            ? Result<Job>(Status::unavailable(options_.why_stopped))
                  : change.request ? add_job(*change.request)
                                   : cancel_job(change.id));
      lock.lock();
      continue;
    }
    if (is_stopping_) return;
    lock.unlock();
    save_again();
    lock.lock();
  }
}

Result<Job> JobRunner::add_job(const JobRequest& request) {
  const auto kind = kinds_.find(request.kind);
  if (kind == kinds_.end()) {
    const auto other = options_.elsewhere.find(request.kind);
    if (other != options_.elsewhere.end()) {
      return Status::invalid_argument(
          fmt::format("jobs of kind '{}' do not run here: {}", other->first, other->second));
    }
    std::vector<std::string_view> names;
    for (const auto& [name, known] : kinds_) names.emplace_back(name);
    return Status::invalid_argument(
        fmt::format("there is no kind of job '{}'; there are: {}", request.kind, fmt::join(names, ", ")));
  }
  if (!request.webhook.empty()) {
    if (webhooks_ == nullptr) return Status::invalid_argument("webhooks are off: allow hosts with --webhooks");
    FOLIOT_RETURN_IF_ERROR(webhooks_->check(request.webhook));
  }
  std::optional<Job> job;
  {
    const MutexLock lock(mutex_);
    FOLIOT_ASSIGN_OR_RETURN(job, table_.admit(request, options_.make_id(), options_.now()));
  }
  FOLIOT_RETURN_IF_ERROR(kind->second->accept(*job));
  std::vector<std::string> gone;
  {
    const MutexLock store_lock(store_mutex_);
    if (const Status status = store_->put(*job); !status.ok()) {
      kind->second->discard(*job);
      const MutexLock lock(mutex_);
      unsaved_.insert(job->id);
      return status.with_context("the job cannot be kept");
    }
    {
      const MutexLock lock(mutex_);
      gone = table_.add(*job);
    }
    for (const std::string& id : gone) {
      const Status status = store_->remove(id);
      if (status.ok()) continue;
      options_.on_failure(status.message());
      const MutexLock lock(mutex_);
      unsaved_.insert(id);
    }
  }
  changed_.notify_all();
  return std::move(job).value();
}

Result<Job> JobRunner::cancel_job(const std::string& id) {
  std::optional<Job> job;
  {
    const MutexLock lock(mutex_);
    FOLIOT_ASSIGN_OR_RETURN(job, table_.cancel(id, options_.now()));
  }
  changed_.notify_all();
  // It never runs.
  const auto kind = kinds_.find(job->kind);
  if (job->has_ended() && kind != kinds_.end()) kind->second->discard(*job);
  FOLIOT_RETURN_IF_ERROR(try_to_save(id).with_context("the job is cancelled, which cannot be kept now"));
  return std::move(job).value();
}

void JobRunner::save(const std::string& id) { [[maybe_unused]] const Status status = try_to_save(id); }

Status JobRunner::try_to_save(const std::string& id) {
  const MutexLock store_lock(store_mutex_);
  const std::optional<Job> job = find(id);
  if (job) return put(*job);
  // Its place was taken, or it was refused.
  FOLIOT_RETURN_IF_ERROR(store_->remove(id));
  const MutexLock lock(mutex_);
  unsaved_.erase(id);
  return Status();
}

// What clients see of it lasts, unless the store fails.
void JobRunner::keep_progress(const std::string& id, const JobProgress& progress) {
  const MutexLock store_lock(store_mutex_);
  Job job = *find(id);
  JobTable::advance(job, progress);
  [[maybe_unused]] const Status status = put(job);
  const MutexLock lock(mutex_);
  table_.advance(id, progress);
}

Status JobRunner::put(const Job& job) {
  Status status = store_->put(job);
  bool report = false;
  {
    const MutexLock lock(mutex_);
    if (status.ok()) {
      unsaved_.erase(job.id);
    } else {
      unsaved_.insert(job.id);
    }
    report = !status.ok() && !store_failed_;
    store_failed_ = !status.ok();
  }
  if (report) options_.on_failure(fmt::format("jobs go on, and cannot be kept now: {}", status.message()));
  if (!status.ok()) changed_.notify_all();
  return status;
}

void JobRunner::save_again() {
  std::set<std::string> ids;
  {
    const MutexLock lock(mutex_);
    ids = unsaved_;
  }
  for (const std::string& id : ids) {
    if (!try_to_save(id).ok()) return;
  }
}

// ---- The workers

void JobRunner::work() {
  while (true) {
    std::optional<Job> job;
    {
      MutexLock lock(mutex_);
      changed_.wait(mutex_, [&]() REQUIRES(mutex_) {
        return is_stopping_ || (job = table_.begin_next(options_.now())).has_value();
      });
      if (!job) return;
      if (is_stopping_) {
        table_.interrupt(job->id);
        return;
      }
    }
    run(*job);
  }
}

void JobRunner::run(const Job& job) {
  // That it began is kept before it runs: a run that ends the process is counted.
  save(job.id);
  Context context(*this, job.id);
  const auto kind = kinds_.find(job.kind);
  const Status status = kind == kinds_.end()
                            ? Status::unimplemented(fmt::format("this server runs no jobs of the kind '{}'", job.kind))
                            : kind->second->run(job, context);
  {
    const MutexLock lock(mutex_);
    if (is_stopping_ && !status.ok() && !table_.is_cancelled(job.id)) {
      table_.interrupt(job.id);
    } else {
      table_.finish(job.id, status, options_.now());
    }
  }
  save(job.id);
  changed_.notify_all();
}

// ---- The notifier

void JobRunner::notify() {
  MutexLock lock(mutex_);
  while (!is_stopping_) {
    const TimePoint now = options_.now();
    table_.mind_clock(now);
    const std::optional<Job> job = table_.due_webhook(now);
    if (!job) {
      const TimePoint next = table_.next_webhook();
      if (next.is_infinite()) {
        changed_.wait(mutex_);
      } else {
        changed_.wait_for(mutex_, next - now);
      }
      continue;
    }
    lock.unlock();
    const Status status = webhooks_ == nullptr ? Status::unavailable("webhooks are off: allow hosts with --webhooks")
                                               : webhooks_->send(job->webhook->url, to_json(*job));
    lock.lock();
    const Job tried = table_.webhook_tried(job->id, status, options_.now());
    lock.unlock();
    if (tried.webhook->state == JobWebhook::State::kFailed) {
      options_.on_failure(fmt::format("the webhook of job '{}' failed {} times, the last time: {}", job->id,
                                      tried.webhook->tries, tried.webhook->error));
    }
    save(job->id);
    lock.lock();
  }
}

}  // namespace foliot
