// UserObservation: what a user made of an item.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_USER_OBSERVATION_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_USER_OBSERVATION_H_

#include <cstdint>

namespace foliot {

// `id` is the client's: of one user, each counts once.
struct UserObservation {
  uint64_t id = 0;
  uint64_t item = 0;
  float value = 0;
  // With which the item was drawn for the validation pool (exploration.h); 0: it was not. The
  // model sets it, not the client.
  float probability = 0;

  bool is_of_pool() const { return probability > 0; }
  // Trainers do not see it, so that versions can be compared on it: those of the pool, and one in twenty of the others.
  bool is_withheld() const { return is_of_pool() || ((id * 0x9e3779b97f4a7c15) >> 32) % 20 == 7; }
  bool operator==(const UserObservation&) const = default;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_USER_OBSERVATION_H_
