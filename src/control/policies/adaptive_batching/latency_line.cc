#include "control/policies/adaptive_batching/latency_line.h"

#include <algorithm>
#include <optional>

namespace foliot::adaptive_batching {

double LatencyLine::loss(const Line& line) const {
  constexpr double kQuantile = 0.99;
  double sum = 0;
  for (const Sample& sample : samples_) {
    const double above = sample.seconds - (line.intercept + line.slope * sample.batch_size);
    sum += above > 0 ? kQuantile * above : (kQuantile - 1) * above;
  }
  return sum;
}

// One of the best lines passes through two of the samples, so it is enough to try
// those. While all batches were of one size, time is taken to grow as the size.
void LatencyLine::add(uint32_t batch_size, Duration measured) {
  samples_.push_back({static_cast<double>(batch_size), measured.to_seconds()});
  if (samples_.size() > kWindow) samples_.pop_front();

  double steepest = 0;
  for (const Sample& sample : samples_) steepest = std::max(steepest, sample.seconds / sample.batch_size);
  line_ = {0, steepest};
  std::optional<double> best;
  for (const Sample& a : samples_) {
    for (const Sample& b : samples_) {
      if (a.batch_size >= b.batch_size || a.seconds >= b.seconds) continue;
      const double slope = (b.seconds - a.seconds) / (b.batch_size - a.batch_size);
      const Line line{a.seconds - slope * a.batch_size, slope};
      const double its_loss = loss(line);
      if (best && its_loss >= *best) continue;
      best = its_loss;
      line_ = line;
    }
  }
}

double LatencyLine::batch_within(Duration objective) const {
  if (samples_.empty()) return 1;
  return std::max(1.0, (objective.to_seconds() - line_.intercept) / line_.slope);
}

}  // namespace foliot::adaptive_batching
