#include "sim/simulation_report.h"

namespace foliot {

double SimulationReport::batch_size_mean() const {
  uint64_t rows = 0;
  for (size_t n = 0; n < batch_sizes.size(); ++n) rows += n * batch_sizes[n];
  return execs == 0 ? 0 : static_cast<double>(rows) / static_cast<double>(execs);
}

}  // namespace foliot
