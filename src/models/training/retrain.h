// retrain(): trains the next version of a personal model in a process of its own (Velox, Listing 2.2).
//
// The trainer is Python code: `python -m foliot.trainer FOLDER`. It is confined as a container is
// (engine/container/container_launch.h): it reads FOLDER and the libraries of its interpreter, and writes one folder,
// which FOLIOT_TRAINING_OUTPUT names. Both hold arrays without headers, little-endian, and one JSON file:
//
//   in FOLDER  users.u64 numbers.u64 counts.u64 ids.u64 items.u64 values.f32 probabilities.f32   (TrainingData)
//              known_items.u64 known_features.f32     of the version before: the one that is served (version_note.h)
//              Of observations that a trainer must not see the value is NaN and the probability -1: those that the
//              server withholds to judge the version, and values outside of what several users have seen
//              (population.h), unless personal.toml has a range. options.json       with the last record of the log
//              that this version was trained on; 0: on none
//   written    features.f32    a row for each of known_items
//              weights.f32     a row for each of users
//              training.json   {"lambda": ..., "metrics": {...}}
//              observations.parquet      optional
//
// With `spark` it is `python -m foliot.spark_trainer FOLDER MASTER`, which is not confined, nor is a trainer of the
// user's there: Spark starts processes and needs a network. Its executors read FOLDER, each some users at a time.
//
// What it wrote is checked before a version is made of it: sizes, values, that no item is missing. The version's folder
// appears whole, by renaming. No log of the server is changed, which may serve meanwhile.
//
// Threading: none; blocks until the trainer has ended.
#ifndef FOLIOT_MODELS_TRAINING_RETRAIN_H_
#define FOLIOT_MODELS_TRAINING_RETRAIN_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

struct RetrainOptions {
  std::vector<std::string> launcher;  // the command that starts this program as a launcher of containers
  std::filesystem::path package;      // the folder of the Python package `foliot`
  std::string python = "python3";
  std::filesystem::path trainer{};  // a Python file with a class Trainer; empty: ALS
  std::string spark{};              // Spark's master, to train there; empty: in the trainer's own process
  uint64_t memory_bytes = uint64_t{8} << 30;
  Duration time_limit = Duration::seconds(7200);
  uint32_t threads = 0;                            // of the trainer's libraries; 0: as many as they choose
  size_t features = 0;                             // 0: as many as the version before
  std::vector<double> lambdas{0.3, 1, 3, 10, 30};  // the best by held out error is taken
  uint32_t iterations = 10;
  uint64_t seed = 1;
};

// Returns the name of the new version. `folder`: NAME, with its versions; `state`: that of the log. `on_line`: what the
// trainer prints. Errors: kNotFound if there is no version or no log; kInvalidArgument naming what is
// wrong with what the trainer made, or how it failed; kResourceExhausted if it did not end within the
// time limit; kUnavailable if another process trains the model.
Result<std::string> retrain(const std::filesystem::path& folder, const std::filesystem::path& state,
                            const RetrainOptions& options, const std::function<void(std::string_view)>& on_line);

}  // namespace foliot

#endif  // FOLIOT_MODELS_TRAINING_RETRAIN_H_
