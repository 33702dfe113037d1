// SelectionMetrics: what applications answered and learned, as Prometheus series.
//
// Threading: any thread.
#ifndef FOLIOT_SELECTION_SELECTION_METRICS_H_
#define FOLIOT_SELECTION_SELECTION_METRICS_H_

#include <string>

#include "metrics/metrics_source.h"
#include "selection/selected_inference.h"

namespace foliot {

class SelectionMetrics : public MetricsSource {
 public:
  // The inference outlives it.
  explicit SelectionMetrics(const SelectedInference& inference) : inference_(inference) {}
  std::string text() const override;

 private:
  const SelectedInference& inference_;
};

}  // namespace foliot

#endif  // FOLIOT_SELECTION_SELECTION_METRICS_H_
