// ObservationTable: users and their observations: all of the state of a personal model. What its
// weights are follows from it and from the version that is served (weight_table.h).
//
// Users stand in places below places(). A user that comes may take a place that was empty.
//
// Threading: not thread-safe.
#ifndef FOLIOT_PERSONAL_OBSERVATION_TABLE_H_
#define FOLIOT_PERSONAL_OBSERVATION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/flat_map.h"

namespace foliot {

// What a user made of an item. `id` is the client's: of one user, each counts once.
struct UserObservation {
  uint64_t id = 0;
  uint64_t item = 0;
  float value = 0;
  // With which the item was drawn for the validation pool (exploration.h); 0: it was not. The
  // model sets it, not the client.
  float probability = 0;

  bool is_of_pool() const { return probability > 0; }
  bool operator==(const UserObservation&) const = default;
};

class ObservationTable {
 public:
  struct User {
    uint64_t id = 0;
    uint64_t first_number = 0;  // of the record of the log that it began with: another one after forget()
    uint64_t number = 0;        // of the last record that is part of it
    uint64_t generation = 0;    // how often it was forgotten, where users have copies on several front ends
    bool is_used = false;
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

  // It is elsewhere from here on: the place is empty.
  void evict(uint32_t place);

  std::optional<uint32_t> find(uint64_t user) const;
  const User& user(size_t place) const { return users_[place]; }
  bool has(uint64_t user, uint64_t id) const;
  // Of an unknown user: none.
  std::span<const UserObservation> observations(uint64_t user) const;
  size_t users() const { return by_id_.size(); }
  size_t places() const { return users_.size(); }

 private:
  uint32_t place_of(uint64_t user);
  static void append(User& known, uint64_t number, std::span<const UserObservation> observations);

  std::vector<User> users_;
  std::vector<uint32_t> empty_places_;
  FlatMap<uint64_t, uint32_t> by_id_;
};

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_OBSERVATION_TABLE_H_
