#include "personal/user_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace foliot {

UserTable::UserTable(std::shared_ptr<const ItemTable> items, const Options& options)
    : items_(std::move(items)),
      options_(options),
      mean_(items_->width()),
      no_observations_(items_->features(), options.lambda),
      prior_(items_->width()) {
  FOLIOT_CHECK(options_.factors_max > 0);
}

UserTable::User& UserTable::add_user(uint64_t user) {
  if (const uint32_t* const place = by_id_.find(user)) return users_[*place];
  if (empty_places_.empty()) {
    empty_places_.push_back(static_cast<uint32_t>(users_.size()));
    users_.emplace_back();
  }
  const uint32_t place = empty_places_.back();
  empty_places_.pop_back();
  by_id_.insert(user, place);
  users_[place].id = user;
  users_[place].is_used = true;
  return users_[place];
}

void UserTable::add(uint64_t user, uint64_t number, std::span<const UserObservation> observations) {
  User& known = add_user(user);
  if (number <= known.number) return;
  known.number = number;
  for (const UserObservation& observation : observations) {
    if (!has(user, observation.id)) known.observations.push_back(observation);
  }
}

void UserTable::remove(uint64_t user, uint64_t number) {
  const uint32_t* const found = by_id_.find(user);
  if (found == nullptr || number <= users_[*found].number) return;
  const uint32_t place = *found;
  User& known = users_[place];
  mean_.replace(known.weights, {});
  if (known.factor != kNone) factors_[known.factor].user = kNone;
  known = User();
  by_id_.erase(user);
  empty_places_.push_back(place);
}

void UserTable::restore(Stored stored) {
  FOLIOT_CHECK(by_id_.find(stored.user) == nullptr);
  User& user = add_user(stored.user);
  user.number = stored.number;
  user.observations = std::move(stored.observations);
  if (stored.weights.empty()) return;
  FOLIOT_CHECK(stored.weights.size() == items_->width());
  user.weights = std::move(stored.weights);
  user.settled = static_cast<uint32_t>(user.observations.size());
  mean_.replace({}, user.weights);
}

bool UserTable::has(uint64_t user, uint64_t id) const {
  const uint32_t* const place = by_id_.find(user);
  if (place == nullptr) return false;
  const std::vector<UserObservation>& all = users_[*place].observations;
  // Retries come soon.
  return std::any_of(all.rbegin(), all.rend(), [id](const UserObservation& one) { return one.id == id; });
}

std::span<const UserObservation> UserTable::observations(uint64_t user) const {
  const uint32_t* const place = by_id_.find(user);
  if (place == nullptr) return {};
  return users_[*place].observations;
}

std::span<const float> UserTable::weights(uint64_t user) {
  const uint32_t* const place = by_id_.find(user);
  if (place == nullptr || users_[*place].observations.empty()) {
    options_.prior_is_mean ? mean_.without({}, prior_) : std::fill(prior_.begin(), prior_.end(), 0.0F);
    return prior_;
  }
  settle(*place, false);
  return users_[*place].weights;
}

const UserWeights& UserTable::factor(uint64_t user) {
  const uint32_t* const place = by_id_.find(user);
  if (place == nullptr || users_[*place].observations.empty()) return no_observations_;
  settle(*place, true);
  return factors_[users_[*place].factor].weights;
}

std::optional<UserTable::Stored> UserTable::stored(size_t place) {
  if (!users_[place].is_used) return std::nullopt;
  if (!users_[place].observations.empty()) settle(static_cast<uint32_t>(place), false);
  const User& user = users_[place];
  return Stored{user.id, user.number, user.observations, user.weights};
}

void UserTable::gather(std::span<const UserObservation> observations) {
  rows_.clear();
  values_.clear();
  for (const UserObservation& observation : observations) {
    const std::optional<size_t> place = items_->find(observation.item);
    if (!place) continue;  // a later table may be without it
    const std::span<const float> row = items_->row(*place);
    rows_.insert(rows_.end(), row.begin(), row.end());
    values_.push_back(observation.value);
  }
}

void UserTable::settle(uint32_t place, bool needs_factor) {
  User& user = users_[place];
  const bool has_new = user.settled < user.observations.size();
  if (user.factor != kNone) factors_[user.factor].was_read = true;
  if (!has_new && (!needs_factor || user.factor != kNone)) return;
  if (user.factor == kNone) {
    user.factor = free_factor();
    factors_[user.factor].user = place;
    build(user, factors_[user.factor].weights);
  } else {
    UserWeights& weights = factors_[user.factor].weights;
    gather(std::span(user.observations).subspan(user.settled));
    const bool is_sound = weights.add(rows_, values_);
    if (is_sound && weights.is_due()) {
      solve(user, weights);
      const std::vector<float> before = user.weights;
      build(user, weights);
      solve(user, weights);
      if (relative_difference(before, user.weights) > kDriftMax) ++corrections_;
    } else if (!is_sound) {
      build(user, weights);
      ++corrections_;
    }
  }
  user.settled = static_cast<uint32_t>(user.observations.size());
  if (has_new) solve(user, factors_[user.factor].weights);
}

// Where even a matrix from scratch has no positive pivots, the user is as one of no observations.
void UserTable::build(User& user, UserWeights& weights) {
  ++builds_;
  gather(user.observations);
  if (!weights.build(rows_, values_)) {
    ++corrections_;
    FOLIOT_CHECK(weights.build({}, {}));
  }
}

void UserTable::solve(User& user, const UserWeights& weights) {
  options_.prior_is_mean ? mean_.without(user.weights, prior_) : std::fill(prior_.begin(), prior_.end(), 0.0F);
  std::vector<float> solution(items_->width());
  weights.solve(prior_, solution);
  mean_.replace(user.weights, solution);
  user.weights = std::move(solution);
}

// CLOCK: one that was not read since the last look.
uint32_t UserTable::free_factor() {
  if (factors_.size() < options_.factors_max) {
    factors_.push_back({.weights = UserWeights(items_->features(), options_.lambda)});
    return static_cast<uint32_t>(factors_.size() - 1);
  }
  while (true) {
    const uint32_t index = next_look_;
    next_look_ = (next_look_ + 1) % static_cast<uint32_t>(factors_.size());
    Factor& factor = factors_[index];
    if (factor.user != kNone && std::exchange(factor.was_read, false)) continue;
    if (factor.user != kNone) users_[factor.user].factor = kNone;
    factor.user = kNone;
    return index;
  }
}

}  // namespace foliot
