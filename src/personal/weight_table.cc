#include "personal/weight_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "personal/cholesky.h"

namespace foliot {
namespace {

// One observation in ten, the same ones for each version.
bool is_held_out(const UserObservation& observation) { return ((observation.id * 0x9e3779b97f4a7c15) >> 32) % 10 == 0; }

}  // namespace

WeightTable::WeightTable(const ObservationTable& users, PersonalVersion version, const Options& options)
    : users_(users),
      version_(std::move(version)),
      options_(options),
      lambda_(version_.lambda > 0 ? version_.lambda : options.lambda),
      mean_(version_.features().width()),
      no_observations_(version_.features().features(), lambda_),
      prior_(version_.features().width()) {
  FOLIOT_CHECK(options_.factors_max > 0);
}

// A user that was forgotten and came again has another first number.
std::optional<TrainedWeights::User> WeightTable::trained(const ObservationTable::User& user) const {
  if (version_.trained == nullptr) return std::nullopt;
  const std::optional<TrainedWeights::User> found = version_.trained->find(user.id);
  if (!found || found->number < user.first_number || found->count > user.observations.size()) return std::nullopt;
  return found;
}

WeightTable::Entry& WeightTable::entry(uint32_t place) {
  if (place >= entries_.size()) entries_.resize(std::max<size_t>(place + 1, users_.places()));
  return entries_[place];
}

void WeightTable::gather(const ObservationTable::User& user, size_t index, std::span<const float> trained,
                         size_t trained_count, Gathered& gathered) const {
  const UserObservation& observation = user.observations[index];
  const std::optional<std::span<const float>> row = items().features_of(observation.item);
  if (!row) return;  // this version is without it
  gathered.rows.insert(gathered.rows.end(), row->begin(), row->end());
  const bool is_trained = index < trained_count && !observation.is_of_pool();
  gathered.values.push_back(is_trained ? product(*row, trained) : observation.value);
}

void WeightTable::gather_all(const ObservationTable::User& user, Gathered& gathered) const {
  const std::optional<TrainedWeights::User> found = trained(user);
  gathered.clear();
  for (size_t i = 0; i < user.observations.size(); ++i) {
    gather(user, i, found ? found->weights : std::span<const float>(), found ? found->count : 0, gathered);
  }
}

std::span<const float> WeightTable::weights(uint64_t user) {
  const std::optional<uint32_t> place = users_.find(user);
  if (!place || users_.user(*place).observations.empty()) {
    mean_.without({}, prior_);
    return prior_;
  }
  settle(*place, false);
  return entries_[*place].weights;
}

std::span<const float> WeightTable::settled_weights(uint32_t place) {
  const Entry& known = entry(place);
  if (!known.weights.empty()) return known.weights;
  if (const auto found = trained(users_.user(place))) return found->weights;
  mean_.without({}, prior_);
  return prior_;
}

size_t WeightTable::unsettled(uint32_t place) const {
  return users_.user(place).observations.size() - (place < entries_.size() ? entries_[place].settled : 0);
}

bool WeightTable::has_factor(uint32_t place) const {
  return place < entries_.size() && entries_[place].factor != kNone;
}

const UserWeights& WeightTable::factor(uint64_t user) {
  const std::optional<uint32_t> place = users_.find(user);
  if (!place || users_.user(*place).observations.empty()) return no_observations_;
  settle(*place, true);
  return factors_[entries_[*place].factor].weights;
}

std::vector<float> WeightTable::mean() const {
  std::vector<float> mean(items().width());
  if (options_.prior_is_mean) mean_.without({}, mean);
  return mean;
}

void WeightTable::settle(uint32_t place, bool needs_factor) {
  const ObservationTable::User& user = users_.user(place);
  Entry& known = entry(place);
  const bool has_new = known.settled < user.observations.size();
  if (known.factor != kNone) factors_[known.factor].was_read = true;
  if (!has_new && (!needs_factor || known.factor != kNone)) return;
  if (known.factor == kNone) {
    known.factor = free_factor();
    factors_[known.factor].place = place;
    build(user, factors_[known.factor].weights);
  } else {
    UserWeights& weights = factors_[known.factor].weights;
    const bool is_sound = add_new(user, known, weights);
    if (is_sound && weights.is_due()) {
      solve(user, known, weights);
      const std::vector<float> before = known.weights;
      build(user, weights);
      solve(user, known, weights);
      if (relative_difference(before, known.weights) > kDriftMax) ++corrections_;
    } else if (!is_sound) {
      build(user, weights);
      ++corrections_;
    }
  }
  known.settled = static_cast<uint32_t>(user.observations.size());
  if (has_new) solve(user, known, factors_[known.factor].weights);
}

bool WeightTable::add_new(const ObservationTable::User& user, Entry& known, UserWeights& weights) {
  gathered_.clear();
  held_.clear();
  for (size_t i = known.settled; i < user.observations.size(); ++i) {
    gather(user, i, {}, 0, is_held_out(user.observations[i]) ? held_ : gathered_);
  }
  if (!weights.add(gathered_.rows, gathered_.values)) return false;
  if (held_.values.empty()) return true;
  if (!gathered_.values.empty()) solve(user, known, weights);
  for (size_t i = 0; i < held_.values.size(); ++i) {
    const size_t width = items().width();
    const double error = product(std::span(held_.rows).subspan(i * width, width), known.weights) - held_.values[i];
    held_out_.record(error * error);
  }
  return weights.add(held_.rows, held_.values);
}

// Where even a matrix from scratch has no positive pivots, the user is as one of no observations.
void WeightTable::build(const ObservationTable::User& user, UserWeights& weights) {
  ++builds_;
  gather_all(user, gathered_);
  if (!weights.build(gathered_.rows, gathered_.values)) {
    ++corrections_;
    FOLIOT_CHECK(weights.build({}, {}));
  }
}

void WeightTable::solve(const ObservationTable::User& user, Entry& known, const UserWeights& weights) {
  const std::optional<TrainedWeights::User> found = trained(user);
  if (found) {
    std::copy(found->weights.begin(), found->weights.end(), prior_.begin());
  } else if (options_.prior_is_mean) {
    mean_.without(known.weights, prior_);
  } else {
    std::fill(prior_.begin(), prior_.end(), 0.0F);
  }
  std::vector<float> solution(items().width());
  weights.solve(prior_, solution);
  mean_.replace(known.weights, solution);
  known.weights = std::move(solution);
}

WeightTable::Prepared WeightTable::prepare(const ObservationTable::User& user, std::span<const float> prior,
                                           bool needs_factor) const {
  Prepared prepared{.settled = static_cast<uint32_t>(user.observations.size())};
  const std::optional<TrainedWeights::User> found = trained(user);
  const bool is_as_trained = found && found->count == user.observations.size() &&
                             std::none_of(user.observations.begin(), user.observations.end(),
                                          [](const auto& one) { return one.is_of_pool(); });
  if (is_as_trained && !needs_factor) {
    prepared.weights.assign(found->weights.begin(), found->weights.end());
    return prepared;
  }
  Gathered gathered;
  gather_all(user, gathered);
  UserWeights weights(items().features(), lambda_);
  if (!weights.build(gathered.rows, gathered.values)) FOLIOT_CHECK(weights.build({}, {}));
  prepared.weights.resize(items().width());
  weights.solve(found ? found->weights : prior, prepared.weights);
  if (needs_factor) prepared.factor = std::move(weights);
  return prepared;
}

std::optional<double> WeightTable::error(const ObservationTable::User& user, std::span<const float> prior,
                                         const UserObservation& observation) const {
  const std::optional<std::span<const float>> row = items().features_of(observation.item);
  if (!row) return std::nullopt;
  const Prepared prepared = prepare(user, prior, false);
  return product(*row, prepared.weights) - observation.value;
}

void WeightTable::store(uint32_t place, Prepared prepared) {
  Entry& known = entry(place);
  mean_.replace(known.weights, prepared.weights);
  known.weights = std::move(prepared.weights);
  known.settled = prepared.settled;
  if (!prepared.factor) return;
  if (known.factor == kNone) known.factor = free_factor();
  factors_[known.factor].place = place;
  factors_[known.factor].weights = *std::move(prepared.factor);
}

void WeightTable::restore(uint32_t place, std::vector<float> weights) {
  FOLIOT_CHECK(weights.size() == items().width());
  store(place,
        {.settled = static_cast<uint32_t>(users_.user(place).observations.size()), .weights = std::move(weights)});
}

void WeightTable::remove(uint32_t place) {
  if (place >= entries_.size()) return;
  mean_.replace(entries_[place].weights, {});
  release(place);
}

KeptWeights WeightTable::kept(uint32_t place) const {
  if (place >= entries_.size()) return {};
  const Entry& known = entries_[place];
  return {.settled = known.settled, .loss = known.loss, .weights = known.weights};
}

void WeightTable::resume(uint32_t place, KeptWeights kept) {
  FOLIOT_CHECK(kept.weights.empty() || kept.weights.size() == items().width());
  Entry& known = entry(place);
  known.settled = kept.settled;
  known.loss = kept.loss;
  known.weights = std::move(kept.weights);
}

void WeightTable::release(uint32_t place) {
  if (place >= entries_.size()) return;
  Entry& known = entries_[place];
  if (known.factor != kNone) factors_[known.factor].place = kNone;
  known = Entry();
}

// CLOCK: one that was not read since the last look.
uint32_t WeightTable::free_factor() {
  if (factors_.size() < options_.factors_max) {
    factors_.push_back({.weights = UserWeights(items().features(), lambda_)});
    return static_cast<uint32_t>(factors_.size() - 1);
  }
  while (true) {
    const uint32_t index = next_look_;
    next_look_ = (next_look_ + 1) % static_cast<uint32_t>(factors_.size());
    Factor& factor = factors_[index];
    if (factor.place != kNone && std::exchange(factor.was_read, false)) continue;
    if (factor.place != kNone) entries_[factor.place].factor = kNone;
    factor.place = kNone;
    return index;
  }
}

}  // namespace foliot
