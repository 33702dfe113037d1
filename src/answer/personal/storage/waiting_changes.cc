#include "answer/personal/storage/waiting_changes.h"

#include <utility>

namespace foliot {

void WaitingChanges::push(UserChange change, bool is_known) {
  OfUser& user = users_[change.user];
  ++user.changes;
  user.observations += change.observations.size();
  if (!change.observations.empty() && !user.is_new && !is_known) {
    user.is_new = true;
    ++new_users_;
  }
  changes_.push_back(std::move(change));
}

UserChange WaitingChanges::pop() {
  UserChange change = std::move(changes_.front());
  changes_.pop_front();
  OfUser& user = *users_.find(change.user);
  user.observations -= change.observations.size();
  if (std::exchange(user.is_new, false)) --new_users_;
  if (--user.changes == 0) users_.erase(change.user);
  return change;
}

size_t WaitingChanges::observations(uint64_t user) const {
  const OfUser* const found = users_.find(user);
  return found == nullptr ? 0 : found->observations;
}

void WaitingChanges::for_each(uint64_t user, const std::function<void(const UserChange&)>& call) const {
  if (!has(user)) return;
  for (const UserChange& change : changes_) {
    if (change.user == user) call(change);
  }
}

}  // namespace foliot
