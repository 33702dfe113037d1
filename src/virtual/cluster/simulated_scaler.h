// SimulatedScaler: what sets targets for the models of a simulated cluster beside its controller, as a tuner of
// pipelines does: it sees what the controller decides, and says from time to time which copies it wants.
#ifndef FOLIOT_VIRTUAL_CLUSTER_SIMULATED_SCALER_H_
#define FOLIOT_VIRTUAL_CLUSTER_SIMULATED_SCALER_H_

#include <functional>
#include <memory>
#include <optional>

#include "control/controller/targets.h"
#include "foundation/base/time.h"
#include "foundation/core/observer.h"

namespace foliot {

class SimulatedScaler : public Observer {
 public:
  static constexpr Duration kInterval = Duration::milliseconds(100);

  // Every kInterval while the controller's process runs. nullopt: what was wanted before is wanted still.
  virtual std::optional<Targets> step(TimePoint now) = 0;
};

// For each process of the controller.
using MakeScaler = std::function<std::unique_ptr<SimulatedScaler>()>;

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_SIMULATED_SCALER_H_
