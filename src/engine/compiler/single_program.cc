#include "engine/compiler/single_program.h"

#include <span>
#include <utility>

#include "engine/compiler/memory_planner.h"
#include "engine/compiler/weights_layout.h"

namespace foliot {
namespace {

constexpr uint64_t kSinglePageBytes = uint64_t{1} << 20;

}  // namespace

Result<SingleProgram> lower_single(const Graph& graph, Device& device) {
  const std::span graphs(&graph, 1);
  FOLIOT_ASSIGN_OR_RETURN(LoweredProgram lowered, device.lower(graphs, device.layouts(graphs).front()));
  SingleProgram single;
  single.weights = lay_out_weights(lowered);
  single.program.device_kind = device.kind();
  single.program.device_fingerprint = device.fingerprint();
  single.program.page_bytes = kSinglePageBytes;
  single.program.weights_bytes = single.weights.size();
  single.program.batch_sizes = {graph.batch_size};
  single.program.plans = std::move(lowered.plans);
  plan_memory(single.program.plans.front());
  return single;
}

}  // namespace foliot
