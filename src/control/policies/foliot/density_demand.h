// DensityDemand: the devices that denser models need. A model's density is the weighted requests that a second of
// EXEC serves in the batches that it is expected to fill.
//
// Densities are kept in classes a fifth apart: models of one class count as equally dense.
//
// Cost: constant time. Threading: not thread-safe; the board's.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_DENSITY_DEMAND_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_DENSITY_DEMAND_H_

#include <array>
#include <cstdint>
#include <vector>

#include "foundation/core/ids.h"

namespace foliot::foliot_policy {

class DensityDemand {
 public:
  // `devices`: what the model needs of the kind, on average; in place of what it needed.
  void set(ModelId model, KindId kind, double devices, double density);
  void forget(ModelId model);
  // Devices of the kind that models of higher classes need.
  double denser(KindId kind, double density) const;

  static uint32_t density_class(double density);

 private:
  static constexpr uint32_t kClasses = 160;  // four for each factor of two
  struct Need {
    KindId kind;
    uint32_t density_class = 0;
    double devices = 0;
  };

  std::vector<std::array<double, kClasses>> kinds_;  // devices, by KindId and class
  std::vector<Need> needs_;                          // by ModelId
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_DENSITY_DEMAND_H_
