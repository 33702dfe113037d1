// MetricsSource: a part of the page that a metrics port serves.
//
// Threading: text() from any thread, while what it describes runs.
#ifndef FOLIOT_OBSERVE_METRICS_METRICS_SOURCE_H_
#define FOLIOT_OBSERVE_METRICS_METRICS_SOURCE_H_

#include <string>

namespace foliot {

class MetricsSource {
 public:
  virtual ~MetricsSource() = default;
  // Prometheus' text format. No two sources of one page have a family in common.
  virtual std::string text() const = 0;
};

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_METRICS_METRICS_SOURCE_H_
