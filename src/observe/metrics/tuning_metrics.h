// TuningMetrics: how many replicas the tuners of pipelines want of each stage, as Prometheus series.
//
// Threading: any thread.
#ifndef FOLIOT_OBSERVE_METRICS_TUNING_METRICS_H_
#define FOLIOT_OBSERVE_METRICS_TUNING_METRICS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "observe/metrics/metrics_source.h"

namespace foliot {

class TuningMetrics : public MetricsSource {
 public:
  struct Stage {
    std::string pipeline;
    std::string stage;
    uint32_t wanted = 0;
    uint32_t planned = 0;
  };

  TuningMetrics();
  ~TuningMetrics() override;

  // In place of those before: pipelines that are no longer tuned have no series.
  void set(const std::vector<Stage>& stages);
  std::string text() const override;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_TUNING_METRICS_H_
