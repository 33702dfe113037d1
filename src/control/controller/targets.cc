#include "control/controller/targets.h"

#include <algorithm>
#include <string>

#include "control/controller/cluster.h"

namespace foliot {
namespace {

Status check_target(const Cluster& cluster, ModelId id, const ModelTarget& target) {
  if (!cluster.is_offered(id)) {
    return Status::not_found("targets: there is no model with id " + std::to_string(id.value()) + "; leave it out");
  }
  const std::string of_model = "targets of model '" + cluster.model(id).name + "': ";
  if (target.copies_least > target.copies_most) {
    return Status::invalid_argument(of_model + "copies_least is " + std::to_string(target.copies_least) +
                                    ", and must not be above copies_most, which is " +
                                    std::to_string(target.copies_most));
  }
  if (target.batch_most == 0) return Status::invalid_argument(of_model + "batch_most is 0, and must be at least 1");
  const auto unknown =
      std::ranges::find_if_not(target.kinds, [&](const std::string& kind) { return cluster.knows_kind(kind); });
  if (unknown == target.kinds.end()) return Status();
  std::string known;
  for (uint16_t i = 0; i < cluster.kind_count(); ++i) known += (i == 0 ? "" : ", ") + cluster.kind_name(KindId(i));
  return Status::invalid_argument(of_model + "kinds has '" + *unknown + "', and must be of " + known);
}

}  // namespace

Status check_targets(const Cluster& cluster, const Targets& targets) {
  for (const auto& [model, target] : targets.models) FOLIOT_RETURN_IF_ERROR(check_target(cluster, model, target));
  return Status();
}

}  // namespace foliot
