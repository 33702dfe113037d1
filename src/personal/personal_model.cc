#include "personal/personal_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "personal/cholesky.h"
#include "personal/user_records.h"

namespace foliot {
namespace {

Status check_options(const PersonalModel::Options& options) {
  const auto wrong = [](const char* name, double value, const char* limit) {
    return Status::invalid_argument(fmt::format("{} = {}: must be {}", name, value, limit));
  };
  const float lambda = options.table.lambda;
  if (!(lambda > 0) || !std::isfinite(lambda)) return wrong("lambda", lambda, "above 0 and finite");
  if (options.table.factors_max == 0) return wrong("factors_max", 0, "at least 1");
  const Exploration& exploration = options.exploration;
  if (!(exploration.epsilon >= 0 && exploration.epsilon <= 1)) return wrong("epsilon", exploration.epsilon, "0 to 1");
  if (!(exploration.pool >= 0 && exploration.pool <= 1)) return wrong("pool", exploration.pool, "0 to 1");
  if (!(exploration.alpha >= 0)) return wrong("alpha", exploration.alpha, "0 or more");
  if (!(exploration.deviation >= 0)) return wrong("deviation", exploration.deviation, "0 or more");
  if (!(options.value_min < options.value_max)) return wrong("value_min", options.value_min, "below value_max");
  return Status();
}

Status unknown_item(uint64_t item) {
  return Status::not_found(fmt::format("item {} is unknown; name one of the table of items", item));
}

}  // namespace

Result<std::unique_ptr<PersonalModel>> PersonalModel::open(std::unique_ptr<Storage> storage,
                                                           std::shared_ptr<const ItemTable> items,
                                                           const Options& options) {
  FOLIOT_RETURN_IF_ERROR(check_options(options));
  std::unique_ptr<PersonalModel> model(new PersonalModel(std::move(items), options));
  FOLIOT_ASSIGN_OR_RETURN(model->log_, Log::open(std::move(storage), {.limits = options.log, .seed = options.seed},
                                                 *model, *model, *model));
  return model;
}

PersonalModel::~PersonalModel() = default;

Result<float> PersonalModel::predict(uint64_t user, uint64_t item) {
  const std::optional<size_t> place = table_.items().find(item);
  if (!place) return unknown_item(item);
  const std::lock_guard lock(mutex_);
  float prediction = 0;
  cholesky<float>().multiply(table_.items().row(*place).data(), 1, table_.items().width(), table_.weights(user).data(),
                             &prediction);
  return prediction;
}

Result<std::vector<ScoredItem>> PersonalModel::top_k(uint64_t user, std::span<const uint64_t> items, size_t k) {
  if (k == 0 || k > kPlacesMax) {
    return Status::invalid_argument(fmt::format("k = {}: must be 1 to {}", k, kPlacesMax));
  }
  std::vector<size_t> candidates;
  for (const uint64_t item : items) {
    const std::optional<size_t> place = table_.items().find(item);
    if (!place) return unknown_item(item);
    candidates.push_back(*place);
  }
  std::sort(candidates.begin(), candidates.end());
  if (const auto twice = std::adjacent_find(candidates.begin(), candidates.end()); twice != candidates.end()) {
    return Status::invalid_argument(
        fmt::format("item {} is named twice; name each candidate once", table_.items().items()[*twice]));
  }

  // The scan of the items needs no lock: it works on copies.
  std::optional<UserWeights> factor;
  std::unique_lock lock(mutex_);
  if (options_.exploration.needs_factor()) factor.emplace(table_.factor(user));
  const std::span<const float> known = table_.weights(user);
  const std::vector<float> weights(known.begin(), known.end());
  Random random = random_.fork();
  lock.unlock();
  return explore(options_.exploration, table_.items(), weights, factor ? &*factor : nullptr, k,
                 items.empty() ? nullptr : &candidates, random);
}

Status PersonalModel::check_observations(std::span<const UserObservation> observations) const {
  if (observations.empty() || observations.size() > kObservationsPerCallMax) {
    return Status::invalid_argument(
        fmt::format("{} observations in a call: must be 1 to {}", observations.size(), kObservationsPerCallMax));
  }
  for (const UserObservation& observation : observations) {
    if (!table_.items().find(observation.item)) return unknown_item(observation.item);
    if (!std::isfinite(observation.value)) {
      return Status::invalid_argument(
          fmt::format("the value of item {} is {}: must be finite", observation.item, observation.value));
    }
  }
  return Status();
}

Status PersonalModel::observe(uint64_t user, std::span<const UserObservation> observations, Done done) {
  FOLIOT_RETURN_IF_ERROR(check_observations(observations));
  Change change{.user = user, .observations = {observations.begin(), observations.end()}, .done = std::move(done)};
  for (UserObservation& observation : change.observations) {
    observation.value = std::clamp(observation.value, options_.value_min, options_.value_max);
  }
  const std::vector<std::byte> record = encode_record(user, change.observations);

  std::unique_lock lock(mutex_);
  const size_t before = table_.observations(user).size();
  if (std::all_of(observations.begin(), observations.end(),
                  [&](const UserObservation& observation) { return table_.has(user, observation.id); })) {
    lock.unlock();
    change.done(Status());
    return Status();
  }
  if (before + observations.size() > options_.observations_per_user_max) {
    return Status::resource_exhausted(fmt::format("the user has {} observations, and {} more are over the limit of {}",
                                                  before, observations.size(), options_.observations_per_user_max));
  }
  if (before == 0 && table_.users() >= options_.users_max) {
    return Status::resource_exhausted(fmt::format("limit of {} users reached; forget some", options_.users_max));
  }
  return append(record, std::move(change), lock);
}

Status PersonalModel::forget(uint64_t user, Done done) {
  const std::vector<std::byte> record = encode_record(user, {});
  std::unique_lock lock(mutex_);
  return append(record, {.user = user, .forgets = true, .done = std::move(done)}, lock);
}

Status PersonalModel::append(std::span<const std::byte> record, Change change, std::unique_lock<std::mutex>& lock) {
  const Result<uint64_t> number = log_->append(record);
  if (!number.ok()) return number.status();
  change.number = *number;
  Done at_once;
  if (options_.durability_is_async) at_once = std::exchange(change.done, nullptr);
  waiting_.push_back(std::move(change));
  lock.unlock();
  if (at_once) at_once(Status());
  return Status();
}

void PersonalModel::apply(const Change& change) {
  change.forgets ? table_.remove(change.user, change.number)
                 : table_.add(change.user, change.number, change.observations);
  observations_since_snapshot_ += std::max<size_t>(1, change.observations.size());
}

void PersonalModel::on_written(uint64_t, uint64_t last, const Status& status) {
  std::vector<Done> answers;
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() && waiting_.front().number <= last) {
    if (status.ok()) apply(waiting_.front());
    if (waiting_.front().done) answers.push_back(std::move(waiting_.front().done));
    waiting_.pop_front();
  }
  const bool is_due = observations_since_snapshot_ >= options_.observations_per_snapshot;
  if (is_due) observations_since_snapshot_ = 0;
  lock.unlock();
  for (const Done& answer : answers) answer(status);
  if (is_due) log_->request_snapshot();
}

Status PersonalModel::on_snapshot(std::span<const std::byte> piece) {
  std::optional<UserTable::Stored> user = decode_user(piece, table_.items().checksum());
  if (!user) return Status::internal("a piece of the snapshot is of another format; use the version that wrote it");
  table_.restore(*std::move(user));
  return Status();
}

Status PersonalModel::on_record(uint64_t number, std::span<const std::byte> record) {
  std::optional<UserRecord> decoded = decode_record(record);
  if (!decoded) {
    return Status::internal(fmt::format("record {} is of another format; use the version that wrote it", number));
  }
  apply({number, decoded->user, decoded->observations.empty(), std::move(decoded->observations), {}});
  return Status();
}

bool PersonalModel::next_piece(std::vector<std::byte>& piece) {
  const std::lock_guard lock(mutex_);
  while (next_place_ < table_.places()) {
    if (const std::optional<UserTable::Stored> user = table_.stored(next_place_++)) {
      encode_user(*user, table_.items().checksum(), piece);
      return true;
    }
  }
  return false;
}

void PersonalModel::on_snapshot_end(uint64_t, const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status.ok()) ++snapshots_;
}

size_t PersonalModel::users() {
  const std::lock_guard lock(mutex_);
  return table_.users();
}

std::vector<UserObservation> PersonalModel::observations(uint64_t user) {
  const std::lock_guard lock(mutex_);
  const std::span<const UserObservation> all = table_.observations(user);
  return {all.begin(), all.end()};
}

uint64_t PersonalModel::snapshots() {
  const std::lock_guard lock(mutex_);
  return snapshots_;
}

}  // namespace foliot
