#include "answer/personal/storage/training_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "answer/personal/storage/user_records.h"
#include "answer/personal/weights/observation_table.h"
#include "foundation/store/log_files.h"

namespace foliot {
namespace {

// A snapshot that is finished meanwhile removes files.
constexpr int kTries = 10;

class TableReader : public LogReader {
 public:
  Status on_snapshot(std::span<const std::byte> piece) override {
    if (decode_item(piece)) return Status();
    std::optional<ObservationTable::User> stored = decode_user(piece);
    if (!stored) return Status::internal("a piece of the snapshot is of another format; use the version that wrote it");
    table.restore(*std::move(stored));
    return Status();
  }
  Status on_record(uint64_t number, std::span<const std::byte> record) override {
    const std::optional<UserRecord> decoded = decode_record(record);
    if (!decoded) {
      return Status::internal(fmt::format("record {} is of another format; use the version that wrote it", number));
    }
    bool was_older = false;
    if (decoded->generation) {
      table.merge(decoded->user, number, *decoded->generation, decoded->observations, was_older);
    } else if (decoded->observations.empty()) {
      table.remove(decoded->user, number);
    } else {
      table.add(decoded->user, number, decoded->observations);
    }
    return Status();
  }
  // A user that is forgotten is not learned from, even if that record does not last and must be sent again.
  void on_unproven(uint64_t number, std::span<const std::byte> record) override {
    const std::optional<UserRecord> decoded = decode_record(record);
    if (!decoded || !decoded->observations.empty()) return;
    bool was_older = false;
    if (decoded->generation) {
      table.merge(decoded->user, number, *decoded->generation, {}, was_older);
    } else {
      table.remove(decoded->user, number);
    }
  }
  ObservationTable table;
};

}  // namespace

Result<TrainingData> TrainingData::read(Storage& storage) {
  TableReader reader;
  Result<uint64_t> number = LogFiles::read_lasting(storage, reader);
  for (int i = 1; i < kTries && !number.ok() && number.status().code() == StatusCode::kNotFound; ++i) {
    reader = TableReader();
    number = LogFiles::read_lasting(storage, reader);
  }
  if (!number.ok()) return number.status();
  TrainingData data{.log_number = *number, .range = reader.table.population().range()};
  std::vector<const ObservationTable::User*> users;
  for (size_t place = 0; place < reader.table.places(); ++place) {
    const ObservationTable::User& user = reader.table.user(place);
    if (user.is_used && !user.observations.empty()) users.push_back(&user);
  }
  std::ranges::sort(users, {}, &ObservationTable::User::id);
  for (const ObservationTable::User* user : users) {
    // A snapshot may contain later records than the number it is named after.
    data.log_number = std::max(data.log_number, user->number);
    data.users.push_back(user->id);
    data.numbers.push_back(user->number);
    data.counts.push_back(user->observations.size());
    for (const UserObservation& observation : user->observations) {
      data.ids.push_back(observation.id);
      data.items.push_back(observation.item);
      data.values.push_back(observation.value);
      data.probabilities.push_back(observation.probability);
    }
  }
  return data;
}

}  // namespace foliot
