// PersonalModel: its versions.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "answer/personal/service/personal_model.h"

namespace foliot {

std::vector<KnownItem> PersonalModel::begin_version() {
  const MutexLock lock(mutex_);
  makes_version_ = true;
  return known_items_.all();
}

void PersonalModel::end_version() {
  const MutexLock lock(mutex_);
  makes_version_ = false;
  drop_features();
}

Status PersonalModel::swap(PersonalVersion version, PoolCheck check, std::optional<VersionComparison>* comparison) {
  FOLIOT_RETURN_IF_ERROR(version.check());
  const MutexLock swapping(swap_mutex_);
  auto next = std::make_unique<WeightTable>(users_table(), std::move(version), options_.table);
  {
    MutexLock lock(mutex_);
    const Population population = users_.population();
    lock.unlock();
    next->begin(population);
  }
  {
    const MutexLock lock(mutex_);
    if (next->version().log_number > last_number_) {
      return Status::invalid_argument(fmt::format(
          "version {} was trained on records up to {} of a log, and this one ends at {}; train it on this log",
          next->version().name, next->version().log_number, last_number_));
    }
    next_ = next.get();
    if (memory_ != nullptr) memory_->begin_next(*next);
  }
  Status status;
  if (check != PoolCheck::kNone) {
    const Result<VersionComparison> compared = compare(*next);
    if (compared.ok() && comparison != nullptr) *comparison = *compared;
    status = compared.ok() ? judge(next->version(), *compared) : compared.status();
  }
  if (status.ok() && check != PoolCheck::kOnly) status = prepare(*next);
  const MutexLock lock(mutex_);
  const bool is_taken = status.ok() && check != PoolCheck::kOnly;
  next_ = nullptr;
  if (memory_ != nullptr) memory_->end_next(is_taken);
  if (is_taken) {
    weights_.swap(next);
    losses_ = Losses();
  }
  drop_features();
  return status;
}

std::optional<ObservationTable::User> PersonalModel::user_at(size_t place) {
  const MutexLock lock(mutex_);
  if (place >= users_.places() || !users_.user(place).is_used) return std::nullopt;
  return users_.user(place);
}

// Users that come meanwhile, and observations, are brought up to date when they are read.
Status PersonalModel::prepare(WeightTable& next) {
  prepare_places(next, false);
  if (memory_ == nullptr) return Status();
  MutexLock lock(mutex_);
  FOLIOT_RETURN_IF_ERROR(memory_->prepare_next());
  lock.unlock();
  prepare_places(next, true);  // of users that came back from the store to a place that was passed
  return Status();
}

// `again`: only those that have none.
void PersonalModel::prepare_places(WeightTable& next, bool again) {
  std::optional<WeightTable::Prior> prior;
  bool has_more = true;
  for (uint32_t place = 0; has_more; ++place) {
    const std::optional<ObservationTable::User> user = user_at(place);
    MutexLock lock(mutex_);
    has_more = place + 1 < users_.places();
    if (!user || user->observations.empty() || (again && next.settled(place) > 0)) continue;
    const bool needs_factor = weights_->has_factor(place);
    if (!prior || place % 64 == 0) prior = next.prior();
    lock.unlock();
    WeightTable::Prepared prepared = next.prepare(*user, *prior, needs_factor);
    lock.lock();
    const ObservationTable::User& now = users_.user(place);
    if (now.is_used && now.id == user->id && now.first_number == user->first_number) {
      next.store(place, std::move(prepared));
    }
  }
}

// Each observation is predicted from those before it of its user, by what no trainer of either version has seen but for
// features and lambda. Users count alike, whatever number of observations they have there.
Result<VersionComparison> PersonalModel::compare(WeightTable& next) {
  struct Compared {
    RunningLoss served{};
    RunningLoss next{};
  };
  MutexLock lock(mutex_);
  WeightTable& table = *weights_;
  const std::vector<PoolPlace> pool(pool_.begin(), pool_.end());
  const WeightTable::Prior prior = table.prior();
  const WeightTable::Prior next_prior = next.prior();
  lock.unlock();
  std::map<uint64_t, Compared> by_user;
  VersionComparison comparison{.with = table.version().name};
  for (const PoolPlace& place : pool) {
    lock.lock();
    FOLIOT_RETURN_IF_ERROR(load(place.user));
    const std::optional<uint32_t> found = users_.find(place.user);
    std::optional<ObservationTable::User> user;
    if (found && users_.user(*found).first_number == place.first_number) user = users_.user(*found);
    lock.unlock();
    if (!user) continue;
    const UserObservation observation = user->observations[place.index];
    if (!prior.range.contains(observation.value)) continue;
    user->observations.resize(place.index);
    const std::optional<double> served = table.error(*user, prior, observation);
    const std::optional<double> candidate = next.error(*user, next_prior, observation);
    if (!served || !candidate) continue;
    ++comparison.observations;
    by_user[place.user].served.record(*served * *served);
    by_user[place.user].next.record(*candidate * *candidate);
  }
  Compared losses;
  for (const auto& [user, of_user] : by_user) {
    losses.served.record(of_user.served.mean());
    losses.next.record(of_user.next.mean());
  }
  comparison.users = by_user.size();
  comparison.loss = losses.next.mean();
  comparison.loss_with = losses.served.mean();
  return comparison;
}

Status PersonalModel::judge(const PersonalVersion& version, const VersionComparison& comparison) {
  const uint64_t count = comparison.observations;
  const bool was_trained = version.was_trained || version.log_number > 0;
  if (count < kPoolMin && was_trained) {
    return Status::unavailable(
        fmt::format("version {} is kept aside: {} observations are withheld from trainers, of {} that are needed to "
                    "compare it with "
                    "version {}; load it again when there are more",
                    version.name, count, kPoolMin, comparison.with));
  }
  const double before = comparison.loss_with;
  const double after = comparison.loss;
  if (count < kPoolMin || after < before || (after == before && !was_trained)) return Status();
  return Status::invalid_argument(fmt::format(
      "version {} is not better on what is withheld from trainers and was not taken: its loss on {} observations of {} "
      "users is {:.4g}, that of version {} {:.4g}",
      version.name, count, comparison.users, after, comparison.with, before));
}

}  // namespace foliot
