// Targets: what should be of each model (foundation/core/model_target.h), as a whole: a model that is
// absent is unconstrained.
//
// A planner, tuner or autoscaler sets Targets, and sends no actions. Controller::set_targets()
// takes them as one event and keeps them in the Cluster, where they constrain every policy:
// - LOAD beyond copies_most or on a kind that is not allowed, INFER above batch_most or on
//   such a kind, and UNLOAD of a copy that copies_least requires are turned down
//   (Verdict::kAgainstTargets);
// - a copy on a kind that is no longer allowed gets no more work, and the controller unloads
//   it once its INFERs are over;
// - of copies beyond copies_most the policy chooses those that go, likewise, and it loads
//   what copies_least asks for (control/policies/common/target_keeper.h).
// What cannot be met, for want of devices, pages or time, is not met, and is tried again when something has changed;
// other models are served meanwhile, in the pages that no target requires. Of copies that together want more pages than
// there are, each model's first one goes before second ones: these may be evicted for it. Where targets leave no device
// that a model may run on, or no room for it, its requests are refused.
#ifndef FOLIOT_CONTROL_CONTROLLER_TARGETS_H_
#define FOLIOT_CONTROL_CONTROLLER_TARGETS_H_

#include <map>
#include <string>

#include "foundation/base/status.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_target.h"

namespace foliot {

struct Targets {
  std::map<ModelId, ModelTarget> models;

  const ModelTarget& of(ModelId model) const {
    static const ModelTarget unconstrained;
    const auto found = models.find(model);
    return found == models.end() ? unconstrained : found->second;
  }
};

// By the names of models; one that is absent is unconstrained.
using NamedTargets = std::map<std::string, ModelTarget>;

struct Cluster;
// Errors: kNotFound naming a model that is not there, kInvalidArgument naming model, value and limit: a kind that
// no device and no model has, copies_least above copies_most, batch_most of 0.
Status check_targets(const Cluster& cluster, const Targets& targets);

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_TARGETS_H_
