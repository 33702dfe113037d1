#include "control/controller/backlog.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {
namespace {

// So much of what was thought of a batch's EXEC is replaced by each new measurement.
constexpr int64_t kForgotten = 8;
constexpr Duration kExecMin = Duration::nanoseconds(1);
// Rates are averaged over so long.
constexpr double kMemorySeconds = 0.5;
// A request without a deadline fills a batch as if it could wait so long.
constexpr Duration kBestEffortWait = Duration::seconds(1);

}  // namespace

void Backlog::on_model_added(const ModelInfo& model) {
  if (model.id.value() >= models_.size()) models_.resize(model.id.value() + 1);
  ModelWork& work = models_[model.id.value()] = {};
  for (const auto& seeds : model.runnables.front().seed_exec) work.buckets.push_back({.exec = seeds});
}

bool Backlog::is_measure(const Action& action) const {
  return cluster_.runnable(action.device, action.model) == &cluster_.model(action.model).runnables.front();
}

// Larger batch sizes may have become ready since the model was added.
Duration& Backlog::exec_of_size(const Action& action) {
  const Runnable& runnable = cluster_.model(action.model).runnables.front();
  const std::vector<Duration>& seeds = runnable.seed_exec[action.bucket.value()];
  std::vector<Duration>& known = models_[action.model.value()].buckets[action.bucket.value()].exec;
  known.insert(known.end(), seeds.begin() + static_cast<std::ptrdiff_t>(known.size()), seeds.end());
  const auto size = std::ranges::find(runnable.batch_sizes, action.batch_size) - runnable.batch_sizes.begin();
  FOLIOT_CHECK(static_cast<size_t>(size) < known.size());
  return known[static_cast<size_t>(size)];
}

void Backlog::on_sent(const Action& action) {
  BucketWork& bucket = models_[action.model.value()].buckets[action.bucket.value()];
  if (bucket.requests == 0 || !is_measure(action)) return;
  bucket.crowded_exec += exec_of_size(action) - bucket.crowded_exec / kForgotten;
  bucket.crowded_rows += action.rows.size() - bucket.crowded_rows / kForgotten;
}

void Backlog::on_exec(const Action& action, Duration exec) {
  if (!is_measure(action)) return;
  Duration& known = exec_of_size(action);
  known += (exec - known) / kForgotten;
}

void Backlog::on_arrival(const Request& request, TimePoint now) {
  BucketWork& bucket = bucket_of(request);
  bucket.rate = bucket.rate * std::exp((bucket.seen - now).to_seconds() / kMemorySeconds) + 1 / kMemorySeconds;
  bucket.seen = now;
}

Duration Backlog::exec(const Request& request) const {
  const BucketWork& bucket = models_[request.model.value()].buckets[request.bucket.value()];
  const std::vector<uint32_t>& sizes = cluster_.model(request.model).runnables.front().batch_sizes;
  const Duration wait =
      request.best_effort() ? kBestEffortWait : request.deadline - request.arrival - cluster_.least_margin();
  Duration least = bucket.exec.front();
  for (size_t i = 1; i < bucket.exec.size(); ++i) {
    const Duration slack = wait - bucket.exec[i];
    if (slack < Duration()) break;
    const double others = std::max<double>(bucket.requests, bucket.rate * slack.to_seconds());
    least = std::min(least, bucket.exec[i].scaled(1 / std::min<double>(sizes[i], 1 + others)));
  }
  if (bucket.crowded_rows > 0) least = std::max(least, bucket.crowded_exec.scaled(1 / bucket.crowded_rows));
  return std::max(kExecMin, least);
}

Duration Backlog::cost(const Request& request) const {
  const bool load = needs_load(request.model) && models_[request.model.value()].requests == 0;
  return exec(request) + (load ? cluster_.model(request.model).runnables.front().seed_load : Duration());
}

Duration Backlog::add(const Request& request) {
  if (request.offline) return Duration();
  ModelWork& model = models_[request.model.value()];
  if (model.requests == 0 && needs_load(request.model))
    load_ += model.load = cluster_.model(request.model).runnables.front().seed_load;
  const Duration added = exec(request);
  model.waiting += added;
  exec_ += added;
  ++model.requests;
  ++bucket_of(request).requests;
  return added;
}

void Backlog::remove(const Request& request, Duration exec) {
  if (request.offline) return;
  ModelWork& model = models_[request.model.value()];
  model.waiting -= exec;
  exec_ -= exec;
  --bucket_of(request).requests;
  if (--model.requests == 0 || !needs_load(request.model)) load_ -= std::exchange(model.load, Duration());
}

Duration Backlog::before(ModelId model, uint32_t devices) const {
  const int64_t all = std::max<int64_t>(devices, 1);
  const int64_t holders = std::max<int64_t>(cluster_.copies[model.value()], 1);
  return std::max({exec_ / all, load_ / all, models_[model.value()].waiting / holders});
}

}  // namespace foliot
