#include "worker/worker.h"

namespace foliot {

Worker::Worker(const WorkerOptions& options, Engine& engine, OutcomeSink& outcomes, const WorkerWakers& wakers)
    : outcomes_(outcomes),
      wakers_(wakers),
      models_(options.models_max),
      slots_(options.infers_in_flight_max),
      load_(options.page_count, options.loads_in_flight_max, models_, engine, outcomes),
      output_(slots_, engine, outcomes),
      exec_(slots_, models_, engine, output_, wakers.output),
      input_(options.io_cache_bytes, slots_, models_, engine, outcomes, exec_, wakers.exec) {
  output_.set_first(input_);
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
