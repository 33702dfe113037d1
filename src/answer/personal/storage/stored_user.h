// What a UserStore holds for a personal model: a value for each user, and a note of the whole.
#ifndef FOLIOT_ANSWER_PERSONAL_STORAGE_STORED_USER_H_
#define FOLIOT_ANSWER_PERSONAL_STORAGE_STORED_USER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "answer/personal/weights/kept_weights.h"
#include "answer/personal/weights/observation_table.h"
#include "answer/personal/weights/population.h"
#include "foundation/base/status.h"

namespace foliot {

// A user with its weights by each table of weights that is in use, by the number of the table. Weights of a table that
// is not in use any more are left out when the value is written the next time.
struct UserValue {
  struct OfTable {
    uint64_t table = 0;
    uint64_t start = 0;  // of the process, as they are counted, since which the loss is recorded
    KeptWeights kept{};
  };
  ObservationTable::User user{};
  std::vector<OfTable> tables{};
};

std::vector<std::byte> encode_value(const UserValue& value);
// Errors: kInternal: it is no value of that user.
Result<UserValue> decode_value(uint64_t user, std::span<const std::byte> bytes);

// Written when the model is closed, and erased when it is opened again: with it, all values and the log say the same.
struct UserNote {
  // An observation of the validation pool.
  struct PoolPlace {
    uint64_t user = 0;
    uint64_t first_number = 0;
    uint64_t index = 0;
  };
  uint64_t salt = 0;    // of the log (LogFiles::salt())
  uint64_t number = 0;  // of the last record that the values contain
  uint64_t users = 0;
  uint64_t start = 0;         // the last one
  bool counts_items = false;  // the log has inputs of items
  uint64_t fingerprint = 0;   // of the version that the weights belong to
  uint64_t table = 0;         // of the weights
  Population::State population{};
  std::vector<PoolPlace> pool{};
  std::vector<uint64_t> forgotten{};  // users that may be in the store's files still
};

std::vector<std::byte> encode_note(const UserNote& note);
// nullopt: it is none.
std::optional<UserNote> decode_note(std::span<const std::byte> bytes);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_STORAGE_STORED_USER_H_
