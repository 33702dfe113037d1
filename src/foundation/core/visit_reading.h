// VisitReading: what OUTPUT reads of the outputs of a visit of a pipeline's stage: which of the
// stage's conditions hold, and how many elements there are.
#ifndef FOLIOT_FOUNDATION_CORE_VISIT_READING_H_
#define FOLIOT_FOUNDATION_CORE_VISIT_READING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foundation/core/stage_condition.h"
#include "foundation/core/stage_count.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct VisitReading {
  ConditionSet conditions = 0;
  float count = 0;  // as it stands in the output (foundation/core/stage_count.h); 0: nothing is counted
};

// `row(i)`: the visit's row of output i of these. No allocation. REQUIRES: at most kConditionsMax
// conditions; what they and the count read is there.
template <typename Row>
VisitReading read_visit(std::span<const StageCondition> conditions, const std::optional<StageCount>& count,
                        const std::vector<TensorSpec>& outputs, Row row) {
  VisitReading reading;
  for (uint32_t i = 0; i < conditions.size(); ++i) {
    const uint32_t output = conditions[i].output;
    const bool held = holds(conditions[i], outputs[output].type, row(output));
    reading.conditions = static_cast<ConditionSet>(reading.conditions | (held ? 1u << i : 0u));
  }
  if (count) reading.count = count_in(outputs[count->output].type, row(count->output));
  return reading;
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_VISIT_READING_H_
