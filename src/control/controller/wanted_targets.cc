#include "control/controller/wanted_targets.h"

#include "control/controller/cluster.h"
#include "control/controller/controller.h"

namespace foliot {

void WantedTargets::set_named(std::shared_ptr<const NamedTargets> targets) {
  named_ = std::move(targets);
  reported_.clear();
  used_ = true;
}

void WantedTargets::scale(Autoscaler autoscaler, Targets targets) {
  scaled_.set(autoscaler, std::move(targets));
  used_ = true;
}

void WantedTargets::apply(Controller& controller, TimePoint now) {
  if (unused()) return;
  const Cluster& cluster = controller.cluster();
  report_unknown(cluster);
  if (const Status status = controller.set_targets(possible(cluster), now); !status.ok()) report(status.message());
}

Targets WantedTargets::possible(const Cluster& cluster) {
  Targets targets;
  for (const auto& model : cluster.models) {
    if (model == nullptr || !cluster.is_offered(model->id)) continue;
    const auto found = named_->find(model->name);
    if (found != named_->end() && can_set(cluster, model->id, found->second))
      targets.models.emplace(model->id, found->second);
  }
  for (const auto& [model, target] : scaled_.merged().models) {
    if (cluster.is_offered(model) && can_set(cluster, model, target)) targets.models.emplace(model, target);
  }
  return targets;
}

// Before the first model nothing is known of any.
void WantedTargets::report_unknown(const Cluster& cluster) {
  std::set<std::string> offered;
  for (const auto& model : cluster.models) {
    if (model != nullptr && cluster.is_offered(model->id)) offered.insert(model->name);
  }
  if (offered.empty()) return;
  for (const auto& [name, target] : *named_) {
    if (!offered.contains(name)) report("targets of model '" + name + "': it is not served, so far");
  }
}

bool WantedTargets::can_set(const Cluster& cluster, ModelId model, const ModelTarget& target) {
  const Status status = check_targets(cluster, Targets{{{model, target}}});
  if (!status.ok()) report(status.message());
  return status.ok();
}

void WantedTargets::report(const std::string& line) {
  if (reported_.insert(line).second) report_(line);
}

}  // namespace foliot
