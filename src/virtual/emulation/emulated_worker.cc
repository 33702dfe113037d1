#include "virtual/emulation/emulated_worker.h"

#include <algorithm>

#include "foundation/core/bounded_row.h"

namespace foliot {
namespace {

// Nothing is copied, so the io cache only has to be counted.
constexpr uint64_t kIoCacheBytes = uint64_t{512} << 20;

WorkerOptions worker_options(uint32_t page_count, const std::vector<ModelInfo>& models) {
  uint32_t models_max = 1;
  for (const ModelInfo& model : models) models_max = std::max(models_max, model.id.value() + 1);
  return {.page_count = page_count, .io_cache_bytes = kIoCacheBytes, .models_max = models_max};
}

IoBytes io_bytes(const ModelInfo& model, uint32_t batch_size) {
  const auto row = [](const std::vector<TensorSpec>& tensors) {
    uint64_t bytes = 0;
    for (const TensorSpec& tensor : tensors) {
      if (tensor.bound) {
        bytes += bounded_row_bytes(tensor);
      } else if (std::ranges::find(tensor.shape, -1) == tensor.shape.end()) {
        bytes += byte_size(tensor.type, tensor.shape);
      }
    }
    return bytes;
  };
  return {.input = batch_size * row(model.inputs), .output = batch_size * row(model.outputs)};
}

// Of every plan, in WorkerModel's order.
std::vector<IoBytes> io_bytes(const ModelInfo& model) {
  std::vector<IoBytes> result;
  for (size_t bucket = 0; bucket < model.buckets.size(); ++bucket) {
    for (const uint32_t size : model.only().batch_sizes) result.push_back(io_bytes(model, size));
  }
  return result;
}

}  // namespace

void EmulatedExecutor::wake() {
  if (running_ || waking_) return;
  waking_ = true;
  clock_.at(clock_.now(), *this, ++ticket_);
}

void EmulatedExecutor::ring(uint64_t ticket) {
  if (ticket != ticket_) return;
  waking_ = false;
  if (running_) {
    running_ = false;
    executor_->finish(start_, clock_.now(), status_);
  }
  poll();
}

void EmulatedExecutor::poll() {
  const Executor::Step step = executor_->poll(clock_.now());
  if (step.run) {
    running_ = true;
    start_ = clock_.now();
    status_ = executor_->perform();
    clock_.at(start_ + device_.duration(executor_->name(), *step.action, start_), *this, ++ticket_);
  } else if (!step.wake.is_infinite()) {
    clock_.at(step.wake, *this, ++ticket_);
  }
}

EmulatedWorker::EmulatedWorker(const EmulatedWorkerOptions& options, const std::vector<ModelInfo>& models,
                               EmulationClock& clock, OutcomeSink& outcomes)
    : device_(options.noise, options.seed),
      load_(clock, device_),
      input_(clock, device_),
      exec_(clock, device_),
      output_(clock, device_),
      worker_(worker_options(options.page_count, models), device_, outcomes, {load_, input_, exec_, output_}) {
  const auto executors = worker_.executors();
  load_.set_executor(*executors[0]);
  input_.set_executor(*executors[1]);
  exec_.set_executor(*executors[2]);
  output_.set_executor(*executors[3]);
  for (const ModelInfo& model : models) {
    WorkerModel added = device_.add({std::make_shared<const ModelInfo>(model)}).value();
    added.io_bytes = io_bytes(model);
    worker_.add_model(std::move(added));
  }
}

}  // namespace foliot
