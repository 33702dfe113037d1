#include "engine/worker/worker.h"

#include <span>

#include "foundation/base/check.h"

namespace foliot {
namespace {

std::vector<Waker*> exec_wakers(const WorkerWakers& wakers) {
  std::vector<Waker*> all{&wakers.exec};
  all.insert(all.end(), wakers.other_lanes.begin(), wakers.other_lanes.end());
  return all;
}

std::vector<ExecLane> exec_lanes(std::span<const std::unique_ptr<ExecExecutor>> executors, const WorkerWakers& wakers) {
  const std::vector<Waker*> of_lanes = exec_wakers(wakers);
  std::vector<ExecLane> lanes;
  for (size_t lane = 0; lane < executors.size(); ++lane) lanes.push_back({executors[lane].get(), of_lanes[lane]});
  return lanes;
}

}  // namespace

Worker::Worker(const WorkerOptions& options, Engine& engine, OutcomeSink& outcomes, const WorkerWakers& wakers)
    : outcomes_(outcomes),
      wakers_(wakers),
      models_(options.models_max),
      slots_(options.infers_in_flight_max),
      load_(options.page_count, options.loads_in_flight_max, models_, engine, outcomes),
      output_(false, options.lane_count, slots_, engine, outcomes),
      large_output_(true, options.lane_count, slots_, engine, outcomes),
      lanes_(make_lanes(options.lane_count, engine)),
      input_(options.io_cache_bytes, options.context_count, slots_, models_, engine, outcomes,
             exec_lanes(lanes_, wakers)) {
  output_.set_first(input_);
  large_output_.set_first(input_);
}

std::vector<std::unique_ptr<ExecExecutor>> Worker::make_lanes(uint32_t count, Engine& engine) {
  FOLIOT_CHECK(count >= 1 && count <= kLanesMax && wakers_.other_lanes.size() == count - 1);
  OutputExecutors outputs{.small = {&output_, &wakers_.output}, .large = {&output_, &wakers_.output}};
  if (wakers_.large_output != nullptr) outputs.large = {&large_output_, wakers_.large_output};
  std::vector<std::unique_ptr<ExecExecutor>> lanes;
  for (uint32_t lane = 0; lane < count; ++lane) {
    lanes.push_back(
        std::make_unique<ExecExecutor>(lane, claims_, slots_, models_, engine, exec_wakers(wakers_), outputs));
  }
  return lanes;
}

std::vector<Executor*> Worker::executors() {
  std::vector<Executor*> all{&load_, &input_, lanes_[0].get(), &output_};
  for (size_t lane = 1; lane < lanes_.size(); ++lane) all.push_back(lanes_[lane].get());
  if (wakers_.large_output != nullptr) all.push_back(&large_output_);
  return all;
}

void Worker::send(const Action& action) {
  const bool infer = action.type == ActionType::kInfer;
  if (infer ? input_.submit(action) : load_.submit(action)) {
    (infer ? wakers_.input : wakers_.load).wake();
    return;
  }
  outcomes_.report({.action = action.id,
                    .type = action.type,
                    .device = action.device,
                    .model = action.model,
                    .status = OutcomeStatus::kQueueFull,
                    .start = action.earliest,
                    .end = action.earliest,
                    .output_end = action.earliest});
}

}  // namespace foliot
