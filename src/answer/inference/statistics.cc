#include "answer/inference/statistics.h"

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/core/version_table.h"

namespace foliot {

void ModelCounters::Counter::add(Duration duration) {
  count_.fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(static_cast<uint64_t>(std::max(duration, Duration()).nanoseconds()),
                         std::memory_order_relaxed);
}

DurationCount ModelCounters::Counter::read() const {
  return {.count = count_.load(std::memory_order_relaxed), .nanoseconds = nanoseconds_.load(std::memory_order_relaxed)};
}

void ModelCounters::count_served(uint32_t rows, const Completion& last, uint64_t now_milliseconds) {
  success_.add(last.finished - last.arrival);
  queue_.add(last.exec_start - last.input_duration - last.arrival);
  compute_input_.add(last.input_duration);
  compute_infer_.add(last.exec_duration);
  compute_output_.add(last.output_duration);
  inference_count_.fetch_add(rows, std::memory_order_relaxed);
  last_inference_milliseconds_.store(now_milliseconds, std::memory_order_relaxed);
}

void ModelCounters::count_failed(Duration duration) { fail_.add(duration); }

void ModelCounters::count_cached(Duration duration) {
  success_.add(duration);
  cache_hit_.add(duration);
}

void ModelCounters::count_cache_miss(Duration lookup) { cache_miss_.add(lookup); }

void ModelCounters::count_execution(uint32_t rows, const Outcome& outcome) {
  FOLIOT_CHECK(rows >= 1 && rows <= kBatchSizeMax);
  Batch& batch = this->batch(rows);
  batch.compute_input.add(outcome.input_duration);
  batch.compute_infer.add(outcome.duration);
  batch.compute_output.add(outcome.output_duration);
  execution_count_.fetch_add(1, std::memory_order_relaxed);
}

ModelCounters::Batch& ModelCounters::batch(uint32_t rows) {
  if (rows <= batches_.size()) return batches_[rows - 1];
  std::call_once(large_made_, [this] {
    large_owner_ = std::make_unique<LargeBatches>();
    large_.store(large_owner_.get(), std::memory_order_release);
  });
  return (*large_owner_)[rows - batches_.size() - 1];
}

ModelStatistics ModelCounters::snapshot() const {
  ModelStatistics copy{
      .name = name_,
      .version = version_,
      .last_inference_milliseconds = last_inference_milliseconds_.load(std::memory_order_relaxed),
      .inference_count = inference_count_.load(std::memory_order_relaxed),
      .execution_count = execution_count_.load(std::memory_order_relaxed),
      .success = success_.read(),
      .fail = fail_.read(),
      .cache_hit = cache_hit_.read(),
      .cache_miss = cache_miss_.read(),
      .queue = queue_.read(),
      .compute_input = compute_input_.read(),
      .compute_infer = compute_infer_.read(),
      .compute_output = compute_output_.read(),
      .batches = {},
  };
  uint32_t rows = 0;
  const auto add = [&](const Batch& batch) {
    ++rows;
    const DurationCount infer = batch.compute_infer.read();
    if (infer.count == 0) return;
    copy.batches.push_back({.batch_size = rows,
                            .compute_input = batch.compute_input.read(),
                            .compute_infer = infer,
                            .compute_output = batch.compute_output.read()});
  };
  for (const Batch& batch : batches_) add(batch);
  if (const LargeBatches* large = large_.load(std::memory_order_acquire)) {
    for (const Batch& batch : *large) add(batch);
  }
  return copy;
}

std::shared_ptr<ModelCounters> CallStatistics::of(const ModelInfo& model) {
  MutexLock lock(mutex_);
  Versions& versions = models_[model.name];
  for (const auto& counters : {versions.last, versions.before}) {
    if (counters != nullptr && counters->version() == model.version) return counters;
  }
  versions.before = std::exchange(versions.last,
                                  std::make_shared<ModelCounters>(std::string(client_name(model.name)), model.version));
  return versions.last;
}

std::vector<std::string> CallStatistics::names() const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  names.reserve(models_.size());
  for (const auto& [name, versions] : models_) names.push_back(name);
  return names;
}

void CallStatistics::forget(const std::string& model) {
  MutexLock lock(mutex_);
  models_.erase(model);
}

std::vector<ModelStatistics> CallStatistics::snapshot() const {
  std::vector<std::shared_ptr<const ModelCounters>> all;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, versions] : models_) {
      all.push_back(versions.last);
      if (versions.before != nullptr) all.push_back(versions.before);
    }
  }
  std::vector<ModelStatistics> copies;
  copies.reserve(all.size());
  for (const auto& counters : all) copies.push_back(counters->snapshot());
  return copies;
}

}  // namespace foliot
