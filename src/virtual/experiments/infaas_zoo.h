// The tasks, variants, workers and prices of INFaaS' experiments, in virtual time.
//
// From the paper: Table 2 (ResNet-50 on 4 CPUs, an Inferentia core and a V100), 22 architectures,
// and the kinds of workers. Ours: everything else follows from Table 2 by the work of an
// architecture relative to ResNet-50, since the paper does not print its profiles.
#ifndef FOLIOT_VIRTUAL_EXPERIMENTS_INFAAS_ZOO_H_
#define FOLIOT_VIRTUAL_EXPERIMENTS_INFAAS_ZOO_H_

#include <string>
#include <vector>

#include "virtual/experiments/fleet_simulation.h"

namespace foliot {

struct ZooArchitecture {
  std::string name;
  double work;      // relative to ResNet-50
  double accuracy;  // of ImageNet, top 1; of GNMT, scaled
};
const std::vector<ZooArchitecture>& infaas_architectures();

// "cpu", "inferentia", "gpu-1", "gpu-8", "gpu-32" of an architecture, for an SLO; price and
// saturation are those of a share.
std::vector<Variant> infaas_variants(const ZooArchitecture& architecture, Duration slo,
                                     const std::vector<std::string>& which);

// Of each kind: m5.2xlarge, inf1.2xlarge, p3.2xlarge.
FleetWorkers infaas_workers(const std::string& kind, uint32_t count, uint32_t most);

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EXPERIMENTS_INFAAS_ZOO_H_
