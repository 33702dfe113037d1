#include "virtual/simulation/simulation_report.h"

namespace foliot {

double SimulationReport::batch_size_mean() const {
  uint64_t rows = 0;
  for (size_t n = 0; n < batch_sizes.size(); ++n) rows += n * batch_sizes[n];
  return execs == 0 ? 0 : static_cast<double>(rows) / static_cast<double>(execs);
}

Duration FaultReport::recovery(size_t fault) const {
  const auto missed_share = [fault](const FaultTally& tally, size_t bin) {
    const FaultTally::Bin& b = tally.bins[fault][bin];
    return b.offered == 0 ? 0 : 1 - static_cast<double>(b.good) / static_cast<double>(b.offered);
  };
  for (size_t bin = met.bins[fault].size(); bin-- > 0;) {
    if (missed_share(met, bin) > missed_share(meetable, bin) + 0.05) {
      return kFaultBin * static_cast<int64_t>(bin + 1);
    }
  }
  return Duration();
}

Duration FaultReport::recovery_max() const {
  Duration longest;
  for (size_t fault = 0; fault < faults.size(); ++fault) longest = std::max(longest, recovery(fault));
  return longest;
}

}  // namespace foliot
