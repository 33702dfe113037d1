// FeatureSource: where a personal model takes the features of items from that another model computes: from the items
// that it knows, from a cache, or from that model, with the deadline of the call.
//
// All features of a call are of one version of the feature model, and so are the weights that they meet: a new version
// is used from use() on.
//
// Threading: any; find() and compute() block, or take as long as the feature model does.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_SOURCE_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "answer/inference/call_error.h"
#include "answer/inference/personal_service.h"
#include "answer/personal/service/feature_asker.h"
#include "answer/personal/service/feature_cache.h"
#include "answer/personal/service/personal_model.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"

namespace foliot {

class FeatureSource {
 public:
  struct Options {
    std::string model;   // a served model or pipeline
    std::string output;  // empty: its only one
    uint64_t cache_bytes = 64 << 20;
  };
  // Items, since the start.
  struct Counters {
    std::atomic<uint64_t> known{0};
    std::atomic<uint64_t> cached{0};
    std::atomic<uint64_t> computed{0};
  };
  struct ItemsOfCall {
    std::vector<uint64_t> items;
    std::shared_ptr<const ItemTensors> inputs{};  // null: all are known
    TimePoint arrival;
    TimePoint deadline = TimePoint::infinite_future();
    std::shared_ptr<Tenant> tenant{};
  };
  using Done = std::function<void(std::variant<ComputedRows, CallError>)>;

  // Both outlive it.
  FeatureSource(Options options, const Catalog& catalog, FeatureAsker& asker)
      : options_(std::move(options)), catalog_(catalog), asker_(asker), cache_(options_.cache_bytes) {}

  const std::string& model() const { return options_.model; }
  // The version that is served now. Errors: kUnavailable if there is none; kInvalidArgument if it cannot give features:
  // an application, a task or a personal model, no such output, or one that is no row of 1 to kFeaturesMax FP32.
  Result<FeatureModel> find() const;
  // Adds what a version gives for those of these items that have no features yet, at best effort. Errors: why it does
  // not.
  Status compute(const FeatureModel& model, const std::vector<KnownItem>& items, ComputedItems& computed);
  void use(FeatureModel model, std::shared_ptr<ComputedItems> items);
  // nullopt: there was no use().
  std::optional<FeatureModel> used() const;

  // `done` by any thread, also before this returns. Errors: kNotFound for an item that is not known, without an input;
  // kInvalidArgument for inputs that are none, and for one that is not that of a known item; those of the feature
  // model, which name it. REQUIRES: there was a use().
  void resolve(PersonalModel& known, ItemsOfCall call, Done done);

  const Counters& counters() const { return counters_; }
  uint64_t cache_bytes() const { return cache_.bytes(); }

 private:
  struct Version {
    FeatureModel model;
    std::shared_ptr<ComputedItems> items;
    uint64_t checksum = 0;
  };
  struct Resolving;  // a call
  std::shared_ptr<const Version> version() const;
  // Whether its features are there; otherwise they are asked for.
  Status resolve(PersonalModel& known, Resolving& resolving, size_t index, std::string* input);
  void finish(Resolving& resolving, std::variant<std::vector<float>, CallError> computed);

  const Options options_;
  const Catalog& catalog_;
  FeatureAsker& asker_;
  FeatureCache cache_;
  Counters counters_;
  mutable Mutex mutex_;
  std::shared_ptr<const Version> version_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_FEATURE_SOURCE_H_
