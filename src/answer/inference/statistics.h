// CallStatistics: per model and version, how many inferences there were and where their
// time went, as the protocol's statistics extension counts it.
//
// Calls are counted when their last row is done, with that row's times;
// executions when the worker reports them.
//
// Threading: counting is lock-free and may happen on any thread; of() and
// snapshot() take a lock that no counting waits for.
#ifndef FOLIOT_ANSWER_INFERENCE_STATISTICS_H_
#define FOLIOT_ANSWER_INFERENCE_STATISTICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/model_info.h"
#include "foundation/core/request.h"

namespace foliot {

// A consistent enough copy: each number is exact, together they may be a call apart.
struct DurationCount {
  uint64_t count = 0;
  uint64_t nanoseconds = 0;
};

struct BatchStatistics {
  uint32_t batch_size = 0;
  DurationCount compute_input;
  DurationCount compute_infer;
  DurationCount compute_output;
};

struct ModelStatistics {
  std::string name;
  std::string version;
  uint64_t last_inference_milliseconds = 0;  // since 1970
  uint64_t inference_count = 0;              // rows
  uint64_t execution_count = 0;
  DurationCount success;  // calls, from arrival to answer
  DurationCount fail;
  DurationCount cache_hit;   // those of success that were answered from the cache
  DurationCount cache_miss;  // calls that were not there, and the time of looking
  DurationCount queue;
  DurationCount compute_input;
  DurationCount compute_infer;
  DurationCount compute_output;
  std::vector<BatchStatistics> batches;  // by the number of rows, ascending
};

// The counters of one version of a model.
class ModelCounters {
 public:
  ModelCounters(std::string name, std::string version) : name_(std::move(name)), version_(std::move(version)) {}

  // A call of `rows` rows whose last row was `last`; `now_milliseconds` since 1970.
  void count_served(uint32_t rows, const Completion& last, uint64_t now_milliseconds);
  void count_failed(Duration duration);
  // A call that was answered from the cache, and one that was not found there.
  void count_cached(Duration duration);
  void count_cache_miss(Duration lookup);
  void count_execution(uint32_t rows, const Outcome& outcome);
  const std::string& version() const { return version_; }
  ModelStatistics snapshot() const;

 private:
  class Counter {
   public:
    void add(Duration duration);
    DurationCount read() const;

   private:
    std::atomic<uint64_t> count_{0};
    std::atomic<uint64_t> nanoseconds_{0};
  };
  struct Batch {
    Counter compute_input;
    Counter compute_infer;
    Counter compute_output;
  };

  const std::string name_;
  const std::string version_;
  std::atomic<uint64_t> last_inference_milliseconds_{0};
  std::atomic<uint64_t> inference_count_{0};
  std::atomic<uint64_t> execution_count_{0};
  Counter success_;
  Counter fail_;
  Counter cache_hit_;
  Counter cache_miss_;
  Counter queue_;
  Counter compute_input_;
  Counter compute_infer_;
  Counter compute_output_;
  // Larger ones are of containers alone.
  using LargeBatches = std::array<Batch, kBatchSizeMax - kCompiledBatchSizeMax>;

  Batch& batch(uint32_t rows);

  std::array<Batch, kCompiledBatchSizeMax> batches_;  // [rows - 1]
  std::once_flag large_made_;
  std::unique_ptr<LargeBatches> large_owner_;
  std::atomic<const LargeBatches*> large_{nullptr};  // null: there was none yet
};

class CallStatistics {
 public:
  // The counters of the model's version, made when it is first asked for; kept when it
  // is unloaded and loaded again. Those of an earlier version are kept until there is a
  // third: while a model is updated, calls of both are under way.
  std::shared_ptr<ModelCounters> of(const ModelInfo& model);
  std::vector<std::string> names() const;
  // The statistics of the model's versions begin anew when they are asked for.
  void forget(const std::string& model);
  // Of all models, by name, and of each the version that came last first.
  std::vector<ModelStatistics> snapshot() const;

 private:
  struct Versions {
    std::shared_ptr<ModelCounters> last;
    std::shared_ptr<ModelCounters> before;  // nullptr where there was none
  };
  mutable Mutex mutex_;
  std::map<std::string, Versions, std::less<>> models_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_STATISTICS_H_
