#include "controller/cluster.h"

#include "controller/rolling_duration_model.h"

namespace foliot {

Cluster::Cluster() : Cluster(std::make_unique<RollingDurationModel>()) {}

}  // namespace foliot
