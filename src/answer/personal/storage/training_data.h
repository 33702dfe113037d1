// TrainingData: what a trainer learns from: all observations of a log that last, by user, without
// users that are forgotten, which need not last yet.
//
// Threading: none.
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_TRAINING_DATA_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_TRAINING_DATA_H_

#include <cstdint>
#include <vector>

#include "answer/personal/weights/user_observation.h"
#include "answer/personal/weights/value_range.h"
#include "foundation/base/status.h"
#include "foundation/store/storage.h"

namespace foliot {

struct TrainingData {
  uint64_t log_number = 0;  // S: of the last record
  // Of each user, ids ascending.
  std::vector<uint64_t> users{};
  std::vector<uint64_t> numbers{};  // of the last record that is part of it
  std::vector<uint64_t> counts{};   // observations
  // Of each observation: those of the first user in the order in which they came, then those of the next.
  std::vector<uint64_t> ids{};
  std::vector<uint64_t> items{};
  std::vector<float> values{};
  std::vector<float> probabilities{};  // as in UserObservation
  ValueRange range{};                  // of values that several users have seen (population.h)

  // Observation `index` is not for trainers: it is withheld, or its value is outside of this range.
  bool is_hidden(size_t index, const ValueRange& counted) const {
    const UserObservation one{.id = ids[index], .probability = probabilities[index]};
    return one.is_withheld() || !counted.contains(values[index]);
  }

  // Reads the log of a personal model, which may be served meanwhile. Errors: as LogFiles::read_lasting().
  static Result<TrainingData> read(Storage& storage);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_TRAINING_DATA_H_
