// Feedback on an earlier answer of an application, as either protocol decodes it.
#ifndef FOLIOT_EDGE_REQUESTS_FEEDBACK_H_
#define FOLIOT_EDGE_REQUESTS_FEEDBACK_H_

#include <string>
#include <utility>
#include <vector>

#include "answer/inference/inference.h"
#include "foundation/base/status.h"

namespace foliot {

struct Feedback {
  std::string feedback_id;
  std::vector<double> label;  // row-major
  std::vector<std::pair<std::string, double>> losses;

  // Errors: kInvalidArgument without an id, unless each loss names a model, and unless there is either a label or a
  // loss.
  Status check() const;
  // Shows this; of no application yet.
  Observation observation() const;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_FEEDBACK_H_
