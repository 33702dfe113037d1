#include "answer/personal/weights/observation_table.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace foliot {

uint32_t ObservationTable::place_of(uint64_t user) {
  if (const uint32_t* const place = by_id_.find(user)) return *place;
  if (empty_places_.empty()) {
    empty_places_.push_back(static_cast<uint32_t>(users_.size()));
    users_.emplace_back();
  }
  const uint32_t place = empty_places_.back();
  empty_places_.pop_back();
  by_id_.insert(user, place);
  users_[place].id = user;
  users_[place].is_used = true;
  return place;
}

uint32_t ObservationTable::add(uint64_t user, uint64_t number, std::span<const UserObservation> observations) {
  const uint32_t place = place_of(user);
  User& known = users_[place];
  if (number > known.number) append(known, number, observations);
  return place;
}

void ObservationTable::append(User& known, uint64_t number, std::span<const UserObservation> observations) {
  constexpr size_t kFew = 16;
  if (known.number == 0) known.first_number = number;
  known.number = number;
  const auto has_id = [&known](uint64_t id) {
    // Retries come soon.
    return std::any_of(known.observations.rbegin(), known.observations.rend(),
                       [id](const UserObservation& one) { return one.id == id; });
  };
  std::unordered_set<uint64_t> ids;  // of a whole copy
  if (observations.size() > kFew) {
    for (const UserObservation& one : known.observations) ids.insert(one.id);
  }
  const ValueRange before = known.range;
  const size_t count = known.observations.size();
  for (const UserObservation& observation : observations) {
    const bool is_new = observations.size() > kFew ? ids.insert(observation.id).second : !has_id(observation.id);
    if (!is_new) continue;
    known.observations.push_back(observation);
    known.range.include(observation.value);
  }
  if (known.observations.size() > count) population_.change(known.id, before, known.range, known.observations);
}

uint32_t ObservationTable::merge(uint64_t user, uint64_t number, uint64_t generation,
                                 std::span<const UserObservation> observations, bool& was_older) {
  const uint32_t place = place_of(user);
  User& known = users_[place];
  was_older = number > known.number && generation > known.generation;
  if (was_older) population_.change(user, known.range, {}, {});
  if (was_older) known = {.id = user, .generation = generation, .is_used = true};
  if (number > known.number && generation == known.generation) append(known, number, observations);
  return place;
}

std::optional<uint32_t> ObservationTable::remove(uint64_t user, uint64_t number) {
  const std::optional<uint32_t> place = find(user);
  if (!place || number <= users_[*place].number) return std::nullopt;
  population_.change(user, users_[*place].range, {}, {});
  evict(*place);
  if (!population_.is_short()) return place;
  population_.begin_sample();
  for (const User& one : users_) population_.sample(one.id, one.observations);
  return place;
}

void ObservationTable::evict(uint32_t place) {
  by_id_.erase(users_[place].id);
  users_[place] = User();
  empty_places_.push_back(place);
}

std::optional<uint32_t> ObservationTable::restore(User user) {
  if (by_id_.find(user.id) != nullptr) return std::nullopt;
  const uint32_t place = bring_back(std::move(user));
  const User& known = users_[place];
  if (!known.observations.empty()) population_.change(known.id, {}, known.range, known.observations);
  return place;
}

uint32_t ObservationTable::bring_back(User user) {
  const uint32_t place = place_of(user.id);
  User& known = users_[place];
  known = std::move(user);
  known.is_used = true;
  known.range = {};
  for (const UserObservation& one : known.observations) known.range.include(one.value);
  return place;
}

std::optional<uint32_t> ObservationTable::find(uint64_t user) const {
  const uint32_t* const place = by_id_.find(user);
  return place == nullptr ? std::nullopt : std::optional(*place);
}

bool ObservationTable::has(uint64_t user, uint64_t id) const {
  const std::span<const UserObservation> all = observations(user);
  // Retries come soon.
  return std::any_of(all.rbegin(), all.rend(), [id](const UserObservation& one) { return one.id == id; });
}

std::span<const UserObservation> ObservationTable::observations(uint64_t user) const {
  const std::optional<uint32_t> place = find(user);
  if (!place) return {};
  return users_[*place].observations;
}

}  // namespace foliot
