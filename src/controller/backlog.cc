#include "controller/backlog.h"

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

// So much of what was thought of a row's EXEC gives way to each new measurement.
constexpr int64_t kForgotten = 8;
constexpr Duration kExecMin = Duration::nanoseconds(1);

}  // namespace

void Backlog::on_model_added(const ModelInfo& model) {
  if (model.id.value() >= models_.size()) models_.resize(model.id.value() + 1);
  ModelWork& work = models_[model.id.value()] = {};
  for (const Bucket& bucket : model.buckets) {
    work.exec.push_back(std::max(kExecMin, bucket.seed_exec.back() / model.batch_sizes.back()));
  }
}

void Backlog::on_exec(const Action& action, Duration exec) {
  Duration& known = models_[action.model.value()].exec[action.bucket.value()];
  known = std::max(kExecMin, known + (exec / action.rows.size() - known) / kForgotten);
}

Duration Backlog::cost(const Request& request) const {
  const bool load = needs_load(request.model) && models_[request.model.value()].requests == 0;
  return exec(request.model, request.bucket) + (load ? cluster_.model(request.model).seed_load : Duration());
}

void Backlog::add(const Request& request) {
  ModelWork& model = models_[request.model.value()];
  if (model.requests == 0 && needs_load(request.model)) load_ += model.load = cluster_.model(request.model).seed_load;
  const Duration added = exec(request.model, request.bucket);
  model.waiting += added;
  exec_ += added;
  ++model.requests;
}

void Backlog::remove(ModelId id, Duration exec) {
  ModelWork& model = models_[id.value()];
  model.waiting -= exec;
  exec_ -= exec;
  if (--model.requests == 0 || !needs_load(id)) load_ -= std::exchange(model.load, Duration());
}

Duration Backlog::before(ModelId model, uint32_t devices) const {
  const int64_t all = std::max<int64_t>(devices, 1);
  const int64_t holders = std::max<int64_t>(cluster_.copies[model.value()], 1);
  return std::max({exec_ / all, load_ / all, models_[model.value()].waiting / holders});
}

}  // namespace foliot
