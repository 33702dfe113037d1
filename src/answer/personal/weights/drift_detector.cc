#include "answer/personal/weights/drift_detector.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace foliot {

void DriftDetector::calibrate(Group& group, double loss) {
  ++group.count;
  const double difference = loss - group.mean;
  group.mean += difference / static_cast<double>(group.count);
  group.squares += difference * (loss - group.mean);
  if (group.count != kCalibrationLeast && group.count != kCalibration) return;
  const double error = std::sqrt(group.squares) / static_cast<double>(group.count);
  group.reference = 1.1 * group.mean + 4 * error;
}

double DriftDetector::reference(size_t group) const {
  double least = groups_[group].reference;
  for (size_t i = 0; i < group; ++i) least = std::min(least, groups_[i].reference);
  return least;
}

void DriftDetector::record(size_t observations, double loss) {
  const size_t index = std::min<size_t>(static_cast<size_t>(std::bit_width(observations)), groups_.size() - 1);
  const double expected = reference(index);
  if (groups_[index].count < kCalibration) calibrate(groups_[index], loss);
  is_calibrated_ = is_calibrated_ || std::isfinite(reference(index));
  if (is_found_ || !std::isfinite(expected) || !(expected > 0)) return;
  ++tested_;
  const double multiple = std::min(loss / expected, kMultipleMax);
  for (size_t i = 0; i < kBets.size(); ++i) gains_[i] = (gains_[i] + 1) * (1 + kBets[i] * (multiple - 1));
  is_found_ = evidence() >= kThreshold;
}

double DriftDetector::evidence() const {
  double sum = 0;
  for (const double gain : gains_) sum += gain;
  return sum / static_cast<double>(gains_.size());
}

}  // namespace foliot
