#include "edge/jobs/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

bool has_pending_webhook(const Job& job) {
  return job.has_ended() && job.webhook && job.webhook->state == JobWebhook::State::kPending;
}

}  // namespace

std::vector<Job> JobTable::recover(std::vector<Job> kept, TimePoint now) {
  FOLIOT_CHECK(jobs_.empty());
  std::vector<Job> changed;
  for (Job& job : kept) {
    const Job before = job;
    // One that was damaged may come back with a number that was given again.
    if (job.number <= last_number_) job.number = last_number_ + 1;
    if (job.state == JobState::kRunning) {
      job.state = JobState::kQueued;
      if (job.cancel_requested) {
        end(job, JobState::kCancelled, now);
      } else if (job.starts >= limits_.starts_max) {
        job.error = fmt::format("its run ended with the server's process {} times without progress", job.starts);
        end(job, JobState::kFailed, now);
      }
    }
    job.waiting.clear();
    if (job != before) changed.push_back(job);
    last_number_ = std::max(last_number_, job.number);
    numbers_.emplace(job.id, job.number);
    jobs_.emplace(job.number, std::move(job));
  }
  return changed;
}

Result<Job> JobTable::admit(const JobRequest& request, std::string id, TimePoint now) {
  if (jobs_.size() >= limits_.jobs_max &&
      std::ranges::none_of(jobs_, [](const auto& entry) { return may_go(entry.second); })) {
    return Status::resource_exhausted(
        fmt::format("there are {} jobs that have not ended, the limit: wait for one, or cancel one", jobs_.size()));
  }
  Job job{.id = std::move(id),
          .number = ++last_number_,
          .kind = request.kind,
          .owner = request.owner,
          .request = request.request,
          .created = now};
  if (!request.webhook.empty()) job.webhook = JobWebhook{.url = request.webhook, .error = {}};
  return job;
}

std::vector<std::string> JobTable::add(Job job) {
  std::vector<std::string> gone;
  for (auto at = jobs_.begin(); jobs_.size() >= limits_.jobs_max && at != jobs_.end();) {
    if (!may_go(at->second)) {
      ++at;
      continue;
    }
    numbers_.erase(at->second.id);
    gone.push_back(at->second.id);
    at = jobs_.erase(at);
  }
  numbers_.emplace(job.id, job.number);
  const bool added = jobs_.emplace(job.number, std::move(job)).second;
  FOLIOT_CHECK(added);
  return gone;
}

std::optional<Job> JobTable::begin_next(TimePoint now) {
  const auto next =
      std::ranges::find_if(jobs_, [](const auto& entry) { return entry.second.state == JobState::kQueued; });
  if (next == jobs_.end()) return std::nullopt;
  Job& job = next->second;
  job.state = JobState::kRunning;
  ++job.starts;
  if (job.started == TimePoint()) job.started = now;
  return job;
}

void JobTable::advance(Job& job, const JobProgress& progress) {
  if (progress.done > job.done) {
    job.starts = 1;
    job.waiting.clear();
  }
  job.done = progress.done;
  job.total = progress.total;
  job.variants = progress.variants;
}

void JobTable::set_waiting(std::string_view id, std::string why) { running(id).waiting = std::move(why); }

Job JobTable::finish(std::string_view id, const Status& status, TimePoint now) {
  Job& job = running(id);
  if (status.ok()) {
    end(job, JobState::kSucceeded, now);
  } else if (job.cancel_requested) {
    end(job, JobState::kCancelled, now);
  } else {
    job.error = status.message();
    end(job, JobState::kFailed, now);
  }
  return job;
}

Job JobTable::interrupt(std::string_view id) {
  Job& job = running(id);
  job.state = JobState::kQueued;
  job.starts = 0;
  job.waiting.clear();
  return job;
}

Result<Job> JobTable::cancel(std::string_view id, TimePoint now) {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return Status::not_found(fmt::format("there is no job '{}'", id));
  Job& job = jobs_.at(found->second);
  if (job.has_ended()) {
    return Status::already_exists(fmt::format("job '{}' has {} already", id, to_string(job.state)));
  }
  job.cancel_requested = true;
  if (job.state == JobState::kQueued) end(job, JobState::kCancelled, now);
  return job;
}

bool JobTable::is_cancelled(std::string_view id) const {
  const auto found = numbers_.find(id);
  return found == numbers_.end() || jobs_.at(found->second).cancel_requested;
}

void JobTable::mind_clock(TimePoint now) {
  for (auto& [number, job] : jobs_) {
    if (!has_pending_webhook(job) || job.webhook->tries == 0) continue;
    job.webhook->next_try = std::min(job.webhook->next_try, now + wait_of(*job.webhook));
  }
}

std::optional<Job> JobTable::due_webhook(TimePoint now) const {
  for (const auto& [number, job] : jobs_) {
    if (has_pending_webhook(job) && job.webhook->next_try <= now) return job;
  }
  return std::nullopt;
}

TimePoint JobTable::next_webhook() const {
  TimePoint next = TimePoint::infinite_future();
  for (const auto& [number, job] : jobs_) {
    if (has_pending_webhook(job)) next = std::min(next, job.webhook->next_try);
  }
  return next;
}

Job JobTable::webhook_tried(std::string_view id, const Status& status, TimePoint now) {
  Job& job = jobs_.at(numbers_.find(id)->second);
  JobWebhook& webhook = *job.webhook;
  ++webhook.tries;
  webhook.error = status.message();
  webhook.next_try = TimePoint();
  if (status.ok()) {
    webhook.state = JobWebhook::State::kDelivered;
  } else if (webhook.tries >= limits_.webhook_tries_max) {
    webhook.state = JobWebhook::State::kFailed;
  } else {
    webhook.next_try = now + wait_of(webhook);
  }
  return job;
}

std::optional<Job> JobTable::find(std::string_view id) const {
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? std::nullopt : std::optional(jobs_.at(found->second));
}

std::vector<Job> JobTable::list() const {
  std::vector<Job> all;
  all.reserve(jobs_.size());
  for (const auto& [number, job] : jobs_) all.push_back(job);
  return all;
}

size_t JobTable::count(JobState state) const {
  return static_cast<size_t>(
      std::ranges::count_if(jobs_, [&](const auto& entry) { return entry.second.state == state; }));
}

Duration JobTable::wait_of(const JobWebhook& webhook) const {
  const uint32_t tries = std::min(webhook.tries, limits_.webhook_tries_max);
  return limits_.webhook_wait_first * (int64_t{1} << (tries - 1));
}

Job& JobTable::running(std::string_view id) {
  const auto found = numbers_.find(id);
  FOLIOT_CHECK(found != numbers_.end());
  Job& job = jobs_.at(found->second);
  FOLIOT_CHECK(job.state == JobState::kRunning);
  return job;
}

void JobTable::end(Job& job, JobState state, TimePoint now) {
  job.state = state;
  job.ended = now;
  job.waiting.clear();
}

// Its place may be taken by another.
bool JobTable::may_go(const Job& job) { return job.has_ended() && !has_pending_webhook(job); }

}  // namespace foliot
