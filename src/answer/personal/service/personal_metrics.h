// PersonalMetrics: what personal models answered and learned, as Prometheus series.
//
// Threading: any thread.
#ifndef FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_METRICS_H_
#define FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_METRICS_H_

#include <string>

#include "answer/personal/service/personal_models.h"
#include "observe/metrics/metrics_source.h"

namespace foliot {

class PersonalMetrics : public MetricsSource {
 public:
  // The models outlive it.
  explicit PersonalMetrics(const PersonalModels& models) : models_(models) {}
  std::string text() const override;

 private:
  const PersonalModels& models_;
};

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PERSONAL_SERVICE_PERSONAL_METRICS_H_
