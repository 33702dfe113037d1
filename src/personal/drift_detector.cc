#include "personal/drift_detector.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace foliot {

void DriftDetector::record(size_t observations, double loss) {
  Group& group = groups_[std::min<size_t>(static_cast<size_t>(std::bit_width(observations)), groups_.size() - 1)];
  if (group.count < kCalibration) {
    ++group.count;
    const double difference = loss - group.mean;
    group.mean += difference / static_cast<double>(group.count);
    group.squares += difference * (loss - group.mean);
    const double error = std::sqrt(group.squares) / static_cast<double>(group.count);
    group.reference = 1.1 * group.mean + 4 * error;
    return;
  }
  if (is_found_ || !(group.reference > 0)) return;
  ++tested_;
  const double multiple = std::min(loss / group.reference, kMultipleMax);
  for (size_t i = 0; i < kBets.size(); ++i) gains_[i] = (gains_[i] + 1) * (1 + kBets[i] * (multiple - 1));
  is_found_ = evidence() >= kThreshold;
}

double DriftDetector::evidence() const {
  double sum = 0;
  for (const double gain : gains_) sum += gain;
  return sum / static_cast<double>(gains_.size());
}

}  // namespace foliot
