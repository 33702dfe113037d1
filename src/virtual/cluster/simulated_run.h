// SimulatedRun: what a run of a simulated cluster's pipeline must have computed, derived from the run's inputs and
// from the actions that made its visits, and from nothing that a worker or the controller said about it.
//
// Of each visit: whether it had to be made (its condition, its number of elements), on what, and so what it had to
// make. What a client gets is compared with that, visit by visit.
#ifndef FOLIOT_VIRTUAL_CLUSTER_SIMULATED_RUN_H_
#define FOLIOT_VIRTUAL_CLUSTER_SIMULATED_RUN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"
#include "foundation/core/pipeline_info.h"
#include "foundation/core/stage_slots.h"
#include "virtual/world/simulated_row.h"

namespace foliot {

// What came of a run's visits.
struct ReceivedRun {
  struct Visit {
    SimulatedRow outputs{};  // as far as clients may get them
    uint32_t ends = 0;       // how often it was said to be complete
  };
  std::vector<Visit> visits;           // by slot
  std::vector<uint32_t> empty_stages;  // that were said to have been visited for no elements
};

// Of the call's inputs, by their names, the tensor of a SimulatedRow that each is. REQUIRES: it is such a name.
uint32_t simulated_input(const ModelInfo& info, uint32_t input);

// What is wrong with a run that was served; empty: nothing. `info`: of the pipeline, whose stages have models of
// simulated versions. `actions`: by slot, those that made the visits, as the completion names them. REQUIRES: each
// stage has outputs that clients may get, "y" among them.
std::string check_simulated_run(const ModelInfo& info, const SimulatedRow& inputs,
                                const std::map<uint32_t, ActionId>& actions, const ReceivedRun& received);

// Whether its first stage counts more elements than there may be.
bool counts_too_many(const ModelInfo& info, const SimulatedRow& inputs);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_SIMULATED_RUN_H_
