// WantedTargets: what an operator and autoscalers want of the models, and as much of it as can be set.
//
// An operator's targets go before those of all autoscalers (control/controller/scaled_targets.h), model by model. They
// are by the names of models, so that they hold for models and versions that come later. What cannot be set, such as a
// kind of which no device has joined so far, is reported once and left out; apply() tries it again.
//
// Threading: one owner.
#ifndef FOLIOT_CONTROL_CONTROLLER_WANTED_TARGETS_H_
#define FOLIOT_CONTROL_CONTROLLER_WANTED_TARGETS_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "control/controller/scaled_targets.h"
#include "control/controller/targets.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"

namespace foliot {

class Controller;
struct Cluster;

class WantedTargets {
 public:
  // A line for operators: what cannot be set, and why.
  using Report = std::function<void(const std::string& line)>;
  explicit WantedTargets(Report report) : report_(std::move(report)) {}

  // An operator's, in place of those before. What is reported of them is reported anew.
  void set_named(std::shared_ptr<const NamedTargets> targets);
  void scale(Autoscaler autoscaler, Targets targets);
  // The model has left. Its id may be another's soon.
  void forget(ModelId model) { scaled_.forget(model); }

  // None was ever set: there is nothing to apply, and nothing to take back.
  bool unused() const { return !used_; }
  // To be called when targets, models or devices have changed.
  void apply(Controller& controller, TimePoint now);

 private:
  Targets possible(const Cluster& cluster);
  void report_unknown(const Cluster& cluster);
  bool can_set(const Cluster& cluster, ModelId model, const ModelTarget& target);
  void report(const std::string& line);

  const Report report_;
  std::shared_ptr<const NamedTargets> named_ = std::make_shared<const NamedTargets>();
  ScaledTargets scaled_;
  bool used_ = false;
  std::set<std::string> reported_;  // since the operator's were set
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_WANTED_TARGETS_H_
