#include "edge/jobs/job_copy.h"

namespace foliot {

void JobCopy::remove_locked(std::string_view id) {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return;
  jobs_.erase({found->second, found->first});
  numbers_.erase(found);
}

void JobCopy::put_locked(RevisedJob one) {
  if (const auto found = numbers_.find(one.job.id); found != numbers_.end()) {
    if (jobs_.at({found->second, found->first}).revision >= one.revision) return;
    remove_locked(one.job.id);
  }
  numbers_.emplace(one.job.id, one.job.number);
  Place place(one.job.number, one.job.id);
  jobs_.emplace(std::move(place), std::move(one));
}

void JobCopy::put(RevisedJob one) {
  const MutexLock lock(mutex_);
  put_locked(std::move(one));
}

void JobCopy::remove(std::string_view id) {
  const MutexLock lock(mutex_);
  remove_locked(id);
}

void JobCopy::replace(std::vector<RevisedJob> all, uint64_t last) {
  const MutexLock lock(mutex_);
  std::vector<RevisedJob> newer;
  for (auto& [place, one] : jobs_) {
    if (one.revision > last) newer.push_back(std::move(one));
  }
  jobs_.clear();
  numbers_.clear();
  for (RevisedJob& one : all) put_locked(std::move(one));
  for (RevisedJob& one : newer) put_locked(std::move(one));
}

void JobCopy::keep_only(const std::set<std::string, std::less<>>& ids, uint64_t last) {
  const MutexLock lock(mutex_);
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const auto& [place, one] = *at;
    if (one.revision > last || ids.contains(one.job.id)) {
      ++at;
      continue;
    }
    numbers_.erase(one.job.id);
    at = jobs_.erase(at);
  }
}

std::optional<Job> JobCopy::find(std::string_view id) const {
  const MutexLock lock(mutex_);
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? std::nullopt : std::optional(jobs_.at({found->second, found->first}).job);
}

std::vector<Job> JobCopy::list() const {
  const MutexLock lock(mutex_);
  std::vector<Job> all;
  all.reserve(jobs_.size());
  for (const auto& [place, one] : jobs_) all.push_back(one.job);
  return all;
}

size_t JobCopy::size() const {
  const MutexLock lock(mutex_);
  return jobs_.size();
}

}  // namespace foliot
