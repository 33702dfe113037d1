#include "edge/jobs/passed_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {

Status PassedChanges::add(const PassedChange& change, JobService::Done done, TimePoint give_up) {
  const MutexLock lock(mutex_);
  if (waiting_.size() >= kWaitingMax) {
    return Status::unavailable(fmt::format("{} submissions and cancellations wait, the limit", waiting_.size()));
  }
  waiting_.emplace(change.id, Waiting{.json = to_json(change), .done = std::move(done), .give_up = give_up});
  return Status();
}

bool PassedChanges::is_empty() const {
  const MutexLock lock(mutex_);
  return waiting_.empty();
}

bool PassedChanges::has_unpassed() const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(waiting_, [](const auto& entry) { return !entry.second.is_passed; });
}

std::vector<PassedChanges::Change> PassedChanges::those(const std::function<bool(const Waiting&)>& condition) const {
  const MutexLock lock(mutex_);
  std::vector<Change> found;
  for (const auto& [id, one] : waiting_) {
    if (condition(one)) found.push_back({id, one.json, one.is_passed});
  }
  return found;
}

std::vector<PassedChanges::Change> PassedChanges::unpassed() const {
  return those([](const Waiting& one) { return !one.is_passed; });
}

std::vector<PassedChanges::Change> PassedChanges::passed() const {
  return those([](const Waiting& one) { return one.is_passed; });
}

std::vector<PassedChanges::Change> PassedChanges::overdue(TimePoint now) const {
  return those([now](const Waiting& one) { return now >= one.give_up; });
}

std::vector<PassedChanges::Change> PassedChanges::all() const {
  return those([](const Waiting&) { return true; });
}

void PassedChanges::set_passed(const std::string& id) {
  const MutexLock lock(mutex_);
  if (const auto found = waiting_.find(id); found != waiting_.end()) found->second.is_passed = true;
}

void PassedChanges::finish(const std::string& id, Result<Job> answer) {
  JobService::Done done;
  {
    const MutexLock lock(mutex_);
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return;
    done = std::move(found->second.done);
    waiting_.erase(found);
  }
  done(std::move(answer));
}

}  // namespace foliot
