// TrainedWeights: the weights that a trainer gave to users: a file of rows with the magic "foliuser" and
// the keys {user, number, count} (mapped_rows.h).
//
// They stand for the first `count` observations of the user but for those that no trainer sees (PersonalVersion);
// `number` is that of the last record of the log that was read of it.
//
// Threading: any; it does not change.
#ifndef FOLIOT_ANSWER_PERSONAL_WEIGHTS_TRAINED_WEIGHTS_H_
#define FOLIOT_ANSWER_PERSONAL_WEIGHTS_TRAINED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "answer/personal/weights/mapped_rows.h"
#include "foundation/base/status.h"

namespace foliot {

class TrainedWeights {
 public:
  struct User {
    uint64_t number = 0;
    uint64_t count = 0;
    std::span<const float> weights;
  };

  // Errors: as MappedRows.
  static Result<std::shared_ptr<const TrainedWeights>> open(const std::filesystem::path& file);
  // `users`: {user, number, count} of each; `rows`: of `features` entries each.
  static Status write(const std::filesystem::path& file, size_t features, std::span<const uint64_t> users,
                      std::span<const float> rows);

  size_t features() const { return rows_->columns(); }
  size_t users() const { return rows_->rows(); }
  // nullopt: it has none.
  std::optional<User> find(uint64_t user) const;
  uint64_t checksum() const { return rows_->checksum(); }

 private:
  explicit TrainedWeights(std::unique_ptr<const MappedRows> rows) : rows_(std::move(rows)) {}
  const std::unique_ptr<const MappedRows> rows_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_WEIGHTS_TRAINED_WEIGHTS_H_
