#include "answer/personal/weights/trained_weights.h"

namespace foliot {
namespace {

constexpr size_t kKeys = 3;
constexpr RowsFormat kWeightsFormat = {.magic = 0x72657375'696c6f66,  // "foliuser"
                                       .keys = kKeys,
                                       .table = "table of users' weights",
                                       .row = "user",
                                       .value = "weight"};

}  // namespace

Result<std::shared_ptr<const TrainedWeights>> TrainedWeights::open(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<const MappedRows> rows, MappedRows::open(file, kWeightsFormat));
  return std::shared_ptr<const TrainedWeights>(new TrainedWeights(std::move(rows)));
}

Status TrainedWeights::write(const std::filesystem::path& file, size_t features, std::span<const uint64_t> users,
                             std::span<const float> rows) {
  return MappedRows::write(file, kWeightsFormat, features, users, rows);
}

std::optional<TrainedWeights::User> TrainedWeights::find(uint64_t user) const {
  const std::optional<size_t> row = rows_->find(user);
  if (!row) return std::nullopt;
  const std::span<const uint64_t> keys = rows_->keys().subspan(*row * kKeys, kKeys);
  return User{keys[1], keys[2], rows_->row(*row)};
}

}  // namespace foliot
