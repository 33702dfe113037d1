// ModelInfo: the facts of a model that the controller and the front end know: what a
// client sees, and a Runnable for each kind of device that can run it. Its computation is
// the device's business (engine/program/program.h).
#ifndef FOLIOT_FOUNDATION_CORE_MODEL_INFO_H_
#define FOLIOT_FOUNDATION_CORE_MODEL_INFO_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/time.h"
#include "foundation/core/exec_part.h"
#include "foundation/core/ids.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct PipelineInfo;
struct TaskInfo;

// The kind of a device about which nothing else is said. Kinds distinguish devices that
// run one model in different times or batch sizes, or not at all: "cpu", "cpu:4",
// "container:NAME", "cuda".
inline constexpr std::string_view kDefaultKind = "cpu";
inline constexpr size_t kKindBytesMax = 64;
// The limit of the kinds that all devices and models of a controller have: a container model has one of its own, and
// two while a version takes the place of another.
inline constexpr size_t kKindsMax = 2048;
// Whether it is 1 to kKindBytesMax letters, digits and ".:_-".
bool is_kind_name(std::string_view name);

// Of a plan with more, batches are not run in ranges.
inline constexpr size_t kOperatorEndsMax = 4096;

// One declared combination of variable dimensions, smallest first. Requests are
// padded up to the first bucket they fit in.
struct Bucket {
  std::map<std::string, int64_t> dimensions;  // {"sequence": 128}
};

// A model as devices of one kind run it.
struct Runnable {
  std::string kind{kDefaultKind};
  // Ascending; at least {1}. An EXEC runs one of these.
  std::vector<uint32_t> batch_sizes{1};
  uint32_t pages = 1;    // of the page cache, when loaded
  Duration seed_load{};  // expected duration of LOAD
  // Expected durations of EXEC, from the seed profile: [bucket][position of the batch size].
  std::vector<std::vector<Duration>> seed_exec{};
  // Of each operator in turn, the share of an EXEC that is over with it: ascending, to 1.
  // Empty: unknown, the plan counts as one operator. Up to kOperatorEndsMax.
  std::vector<double> operator_ends{};

  uint32_t operator_count() const { return operator_ends.empty() ? 1 : static_cast<uint32_t>(operator_ends.size()); }
  // The share of an EXEC that these operators take.
  double share(OperatorRange range) const {
    const auto until = [this](uint32_t end) {
      return end >= operator_count() ? 1 : end == 0 ? 0 : operator_ends[end - 1];
    };
    return until(range.last) - until(range.first);
  }

  bool operator==(const Runnable&) const = default;
};

struct ModelInfo {
  ModelId id;
  std::string name;
  std::string version = "1";
  // A hash of its files and of how they are to be compiled, the same on machines of
  // every kind: two models of one name and version may differ. Empty: unknown.
  std::string content{};
  // False: the model has no batch dimension, all batch sizes are {1}, and TensorSpec
  // shapes are whole.
  bool batching = true;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<Bucket> buckets;  // at least one
  // The kinds of device that can run it, each once; at least one.
  std::vector<Runnable> runnables{Runnable()};
  // Deadline of requests that bring none; nullopt: they are best effort.
  std::optional<Duration> default_slo;
  // Where not all can be served: what one answer of this model is worth against
  // one of another. Above 0.
  double weight = 1;
  // A batch that is not full may wait for more rows for so long, while its requests have time. nullopt: for as
  // long as the policy finds it worth it.
  std::optional<Duration> batch_delay = Duration();
  // Front ends may answer a call with the prediction of an earlier one with equal inputs.
  bool cache = false;
  // It was compiled from the file of a framework: clients get what they would get of that file's container
  // (answer/inference/foreign_clients.h).
  bool from_framework = false;
  // What answers it are these stages: no device has it, and its one Runnable has batch sizes alone.
  std::shared_ptr<const PipelineInfo> pipeline{};
  // What answers it is one of these variants: likewise.
  std::shared_ptr<const TaskInfo> task{};

  // nullptr: devices of this kind cannot run it.
  const Runnable* find(std::string_view kind) const;
  // Of a model that was made for one kind of device. REQUIRES: it has one Runnable.
  const Runnable& only() const;
  Runnable& only();
  // Those that a device of some kind runs, ascending.
  std::vector<uint32_t> batch_sizes() const;
  uint32_t batch_size_max() const;
  std::string kinds() const;  // "cpu, cuda", for people
};

// The extents of the tensor in this bucket; of one with a bound, the largest. REQUIRES: the
// bucket declares the tensor's dimensions, or the tensor has a bound.
Shape shape_in(const TensorSpec& tensor, const Bucket& bucket);
// The bytes that one row of the tensor lies in, in this bucket. REQUIRES: as shape_in().
uint64_t row_bytes(const TensorSpec& tensor, const Bucket& bucket);

// The same model while only the `count` smallest of its batch sizes can be run.
ModelInfo with_batch_sizes(ModelInfo model, size_t count);

// The same model as devices of one kind run it. REQUIRES: they can.
ModelInfo only_for(std::string_view kind, const ModelInfo& model);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_MODEL_INFO_H_
