// ObservationTable: users and their observations: all of the state of a personal model. What its
// weights are follows from it and from the version that is served (weight_table.h).
//
// Users stand in places below places(). A user that comes may take a place that was empty.
//
// Threading: not thread-safe.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_OBSERVATION_TABLE_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_OBSERVATION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "answer/personal/weights/population.h"
#include "answer/personal/weights/user_observation.h"
#include "answer/personal/weights/value_range.h"
#include "foundation/base/flat_map.h"

namespace foliot {

class ObservationTable {
 public:
  struct User {
    uint64_t id = 0;
    uint64_t first_number = 0;  // of the record of the log that it began with: another one after forget()
    uint64_t number = 0;        // of the last record that is part of it
    uint64_t generation = 0;    // how often it was forgotten, where users have copies on several front ends
    bool is_used = false;
    ValueRange range{};                           // of the values; the table sets it
    std::vector<UserObservation> observations{};  // in the order in which they came
  };

  // Returns the user's place. Observations whose ids the user has already are left out; without effect if
  // `number` is not above that of the user's last change.
  uint32_t add(uint64_t user, uint64_t number, std::span<const UserObservation> observations);
  // As add(), of observations that belong to this generation of the user: those of older ones are removed, and
  // `was_older` is set; without effect if the user is of a later one.
  uint32_t merge(uint64_t user, uint64_t number, uint64_t generation, std::span<const UserObservation> observations,
                 bool& was_older);
  // Returns the place that is empty now; nullopt: there is no such user, or its last change is later.
  std::optional<uint32_t> remove(uint64_t user, uint64_t number);
  // From a snapshot. nullopt: it had this user already, which was forgotten while the snapshot was made and came again
  // to another place. The first of both stays: records after the snapshot's number bring it to the same state.
  std::optional<uint32_t> restore(User user);

  // It is elsewhere from here on: the place is empty. The population has it still.
  void evict(uint32_t place);
  // One that was evicted. REQUIRES: it has no place.
  uint32_t bring_back(User user);

  // Of all users, those that are elsewhere too.
  const Population& population() const { return population_; }
  // REQUIRES: there are no users.
  void restore_population(Population population) { population_ = std::move(population); }

  std::optional<uint32_t> find(uint64_t user) const;
  const User& user(size_t place) const { return users_[place]; }
  bool has(uint64_t user, uint64_t id) const;
  // Of an unknown user: none.
  std::span<const UserObservation> observations(uint64_t user) const;
  size_t users() const { return by_id_.size(); }
  size_t places() const { return users_.size(); }

 private:
  uint32_t place_of(uint64_t user);
  void append(User& known, uint64_t number, std::span<const UserObservation> observations);

  std::vector<User> users_;
  std::vector<uint32_t> empty_places_;
  FlatMap<uint64_t, uint32_t> by_id_;
  Population population_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_OBSERVATION_TABLE_H_
