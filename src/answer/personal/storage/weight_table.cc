#include "answer/personal/storage/weight_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "answer/personal/weights/cholesky.h"
#include "foundation/base/check.h"

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
      pooled_(version_.features(), lambda_),
      no_observations_(version_.features().features(), lambda_),
      zero_(version_.features().width()) {
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
                         size_t trained_count, const ValueRange& range, Gathered& gathered) const {
  const UserObservation& observation = user.observations[index];
  const std::optional<std::span<const float>> row = items().features_of(observation.item);
  if (!row) return;  // this version is without it
  gathered.rows.insert(gathered.rows.end(), row->begin(), row->end());
  const bool is_trained = index < trained_count && !was_hidden(observation);
  gathered.values.push_back(is_trained ? product(*row, trained) : range.clip(observation.value));
}

void WeightTable::gather_all(const ObservationTable::User& user, const ValueRange& range, Gathered& gathered) const {
  const std::optional<TrainedWeights::User> found = trained(user);
  gathered.clear();
  for (size_t i = 0; i < user.observations.size(); ++i) {
    gather(user, i, found ? found->weights : std::span<const float>(), found ? found->count : 0, range, gathered);
  }
}

uint64_t WeightTable::revision() const {
  const Population& population = users_.population();
  return options_.prior_is_mean ? population.revision() : population.range_revision();
}

std::optional<uint64_t> WeightTable::alone() const {
  const Population& population = users_.population();
  return population.users() == 1 ? std::optional(population.kept().begin()->first) : std::nullopt;
}

std::span<const float> WeightTable::pooled() {
  const Population& population = users_.population();
  if (pooled_revision_ != population.revision()) pooled_.refresh(population, range());
  pooled_revision_ = population.revision();
  return pooled_.weights();
}

void WeightTable::begin(const Population& population) {
  pooled_.refresh(population, options_.learns_range ? population.range() : ValueRange::all());
}

std::span<const float> WeightTable::weights(uint64_t user) {
  const std::optional<uint32_t> place = users_.find(user);
  if (!place || users_.user(*place).observations.empty()) return pooled();
  settle(*place, false);
  return entries_[*place].weights;
}

std::span<const float> WeightTable::settled_weights(uint64_t user) {
  const std::optional<uint32_t> place = users_.find(user);
  if (!place) return pooled();
  const Entry& known = entry(*place);
  if (!known.weights.empty()) return known.weights;
  if (const auto found = trained(users_.user(*place))) return found->weights;
  return pooled();
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

WeightTable::Prior WeightTable::prior() {
  Prior prior{
      .weights = std::vector<float>(items().width()), .range = range(), .revision = revision(), .alone = alone()};
  if (options_.prior_is_mean) prior.weights.assign(pooled().begin(), pooled().end());
  return prior;
}

void WeightTable::settle(uint32_t place, bool needs_factor) {
  const ObservationTable::User& user = users_.user(place);
  Entry& known = entry(place);
  const bool has_new = known.settled < user.observations.size();
  const bool is_stale = known.revision != revision();
  if (known.factor != kNone) factors_[known.factor].was_read = true;
  if (!has_new && !is_stale && (!needs_factor || known.factor != kNone)) return;
  const bool has_factor = known.factor != kNone;
  if (!has_factor) {
    known.factor = free_factor();
    factors_[known.factor].place = place;
  }
  Factor& factor = factors_[known.factor];
  if (!has_factor || range().clip(factor.values) != factor.range.clip(factor.values)) {
    build(user, factor);
  } else if (has_new) {
    factor.range = range();
    factor.values = user.range;
    const bool is_sound = add_new(user, known, factor.weights);
    if (is_sound && factor.weights.is_due()) {
      solve(user, known, factor.weights);
      const std::vector<float> before = known.weights;
      build(user, factor);
      solve(user, known, factor.weights);
      if (relative_difference(before, known.weights) > kDriftMax) ++corrections_;
    } else if (!is_sound) {
      build(user, factor);
      ++corrections_;
    }
  }
  known.settled = static_cast<uint32_t>(user.observations.size());
  if (has_new || is_stale) solve(user, known, factor.weights);
}

bool WeightTable::add_new(const ObservationTable::User& user, Entry& known, UserWeights& weights) {
  gathered_.clear();
  held_.clear();
  for (size_t i = known.settled; i < user.observations.size(); ++i) {
    gather(user, i, {}, 0, range(), is_held_out(user.observations[i]) ? held_ : gathered_);
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
void WeightTable::build(const ObservationTable::User& user, Factor& factor) {
  ++builds_;
  factor.range = range();
  factor.values = user.range;
  gather_all(user, factor.range, gathered_);
  if (!factor.weights.build(gathered_.rows, gathered_.values)) {
    ++corrections_;
    FOLIOT_CHECK(factor.weights.build({}, {}));
  }
}

void WeightTable::solve(const ObservationTable::User& user, Entry& known, const UserWeights& weights) {
  known.weights.resize(items().width());
  known.revision = revision();
  if (const std::optional<TrainedWeights::User> found = trained(user)) {
    weights.solve(found->weights, known.weights);
  } else if (options_.prior_is_mean && alone() != user.id) {
    weights.solve(pooled(), known.weights);
  } else {
    weights.solve(zero_, known.weights);
  }
}

WeightTable::Prepared WeightTable::prepare(const ObservationTable::User& user, const Prior& prior,
                                           bool needs_factor) const {
  Prepared prepared{.settled = static_cast<uint32_t>(user.observations.size()),
                    .revision = prior.revision,
                    .range = prior.range,
                    .values = user.range};
  const std::optional<TrainedWeights::User> found = trained(user);
  const bool is_as_trained = found && found->count == user.observations.size() &&
                             std::none_of(user.observations.begin(), user.observations.end(),
                                          [this](const auto& one) { return was_hidden(one); });
  if (is_as_trained && !needs_factor) {
    prepared.weights.assign(found->weights.begin(), found->weights.end());
    return prepared;
  }
  Gathered gathered;
  gather_all(user, prior.range, gathered);
  UserWeights weights(items().features(), lambda_);
  if (!weights.build(gathered.rows, gathered.values)) FOLIOT_CHECK(weights.build({}, {}));
  prepared.weights.resize(items().width());
  const std::span<const float> common = prior.alone == user.id ? zero_ : prior.weights;
  weights.solve(found ? found->weights : common, prepared.weights);
  if (needs_factor) prepared.factor = std::move(weights);
  return prepared;
}

std::optional<double> WeightTable::error(const ObservationTable::User& user, const Prior& prior,
                                         const UserObservation& observation) const {
  const std::optional<std::span<const float>> row = items().features_of(observation.item);
  if (!row) return std::nullopt;
  const Prepared prepared = prepare(user, prior, false);
  return product(*row, prepared.weights) - observation.value;
}

void WeightTable::store(uint32_t place, Prepared prepared) {
  Entry& known = entry(place);
  known.weights = std::move(prepared.weights);
  known.settled = prepared.settled;
  known.revision = prepared.revision;
  if (!prepared.factor) return;
  if (known.factor == kNone) known.factor = free_factor();
  factors_[known.factor].place = place;
  factors_[known.factor].range = prepared.range;
  factors_[known.factor].values = prepared.values;
  factors_[known.factor].weights = *std::move(prepared.factor);
}

void WeightTable::remove(uint32_t place) { release(place); }

KeptWeights WeightTable::kept(uint32_t place) const {
  if (place >= entries_.size()) return {};
  const Entry& known = entries_[place];
  return {.settled = known.settled, .revision = known.revision, .loss = known.loss, .weights = known.weights};
}

void WeightTable::resume(uint32_t place, KeptWeights kept) {
  FOLIOT_CHECK(kept.weights.empty() || kept.weights.size() == items().width());
  Entry& known = entry(place);
  known.settled = kept.settled;
  known.revision = kept.revision;
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
