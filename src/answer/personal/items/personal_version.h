// PersonalVersion: what a trainer made: the features of items, and the weights of users that go with them. Served
// until another one is swapped in (PersonalModel::swap).
//
// Or what takes the place of its table where another model computes the features: that model's version, whose name it
// has, and what it computed so far.
//
// In a folder whose name is that of the version:
//   items.features   ItemTable
//   weights.users    TrainedWeights; optional
//   training.json    {"log_number": S, "lambda": 1.5, "withholds": true, ...metrics}; optional
//
// Threading: any; it does not change, but for what is computed.
#ifndef FOLIOT_ANSWER_PERSONAL_ITEMS_PERSONAL_VERSION_H_
#define FOLIOT_ANSWER_PERSONAL_ITEMS_PERSONAL_VERSION_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "answer/personal/items/computed_items.h"
#include "answer/personal/items/item_features.h"
#include "answer/personal/items/item_table.h"
#include "answer/personal/weights/trained_weights.h"
#include "foundation/base/status.h"

namespace foliot {

struct PersonalVersion {
  std::string name = "1";
  std::shared_ptr<const ItemTable> items;           // null: features are computed
  std::shared_ptr<ComputedItems> computed{};        // null: they are in the table
  std::shared_ptr<const TrainedWeights> trained{};  // null: none
  uint64_t log_number = 0;                          // S: of the last record of the log that it was trained on
  bool was_trained = false;                         // it has a training.json, of whichever log
  float lambda = 0;                                 // 0: that of the options
  bool withholds = false;                           // its trainer has not seen what UserObservation::is_withheld() says

  // Errors: as ItemTable::open() and TrainedWeights::open(); kInvalidArgument naming the file for a training.json
  // that is none, and for weights of another number of features than the items'.
  static Result<PersonalVersion> open(const std::filesystem::path& folder);
  // REQUIRES: check().
  const ItemFeatures& features() const {
    if (computed != nullptr) return *computed;
    return *items;
  }
  // kInvalidArgument naming what is wrong.
  Status check() const;
  // Weights that follow from the same observations and versions of one fingerprint are the same.
  uint64_t fingerprint(float default_lambda) const;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_ITEMS_PERSONAL_VERSION_H_
