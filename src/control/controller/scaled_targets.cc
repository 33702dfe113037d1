#include "control/controller/scaled_targets.h"

#include <algorithm>
#include <utility>

namespace foliot {

void ScaledTargets::set(Autoscaler autoscaler, Targets targets) {
  targets_[static_cast<size_t>(autoscaler)] = std::move(targets);
}

void ScaledTargets::forget(ModelId model) {
  for (Targets& targets : targets_) targets.models.erase(model);
}

Targets ScaledTargets::merged() const {
  Targets all;
  for (const Targets& targets : targets_) {
    for (const auto& [model, target] : targets.models) {
      const auto [found, added] = all.models.emplace(model, target);
      if (added) continue;
      ModelTarget& to = found->second;
      to.copies_least = std::max(to.copies_least, target.copies_least);
      to.copies_most = std::max(to.copies_most, target.copies_most);
      to.batch_most = std::max(to.batch_most, target.batch_most);
      for (const std::string& kind : target.kinds) {
        if (!std::ranges::count(to.kinds, kind)) to.kinds.push_back(kind);
      }
    }
  }
  return all;
}

}  // namespace foliot
