// ModelInfo: the facts of a model that the controller and the front end know. Its
// computation is the device's business (program/program.h).
#ifndef FOLIOT_CORE_MODEL_INFO_H_
#define FOLIOT_CORE_MODEL_INFO_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/ids.h"
#include "core/tensor.h"

namespace foliot {

// One declared combination of variable dimensions, smallest first. Requests are
// padded up to the first bucket they fit in.
struct Bucket {
  std::map<std::string, int64_t> dimensions;  // {"sequence": 128}
  // Expected duration of EXEC for ModelInfo::batch_sizes[i], from the seed profile.
  std::vector<Duration> seed_exec;
};

struct ModelInfo {
  ModelId id;
  std::string name;
  std::string version = "1";
  // A hash of its files and of how they are to be compiled, the same on machines of
  // every kind: two models of one name and version may differ. Empty: unknown.
  std::string content{};
  // Ascending; at least {1}. An EXEC runs one of these.
  std::vector<uint32_t> batch_sizes{1};
  // False: the model has no batch dimension, batch_sizes is {1}, and TensorSpec
  // shapes are whole.
  bool batching = true;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<Bucket> buckets;  // at least one
  uint32_t pages = 1;           // of the page cache, when loaded
  Duration seed_load;           // expected duration of LOAD
  // Deadline of requests that bring none; nullopt: they are best effort.
  std::optional<Duration> default_slo;
  // Where not all can be served: what one answer of this model is worth against
  // one of another. Above 0.
  double weight = 1;

  uint32_t batch_size_max() const { return batch_sizes.back(); }
};

// The same model while only the `count` smallest of its batch sizes can be run.
inline ModelInfo with_batch_sizes(ModelInfo model, size_t count) {
  model.batch_sizes.resize(count);
  for (Bucket& bucket : model.buckets) bucket.seed_exec.resize(count);
  return model;
}

}  // namespace foliot

#endif  // FOLIOT_CORE_MODEL_INFO_H_
