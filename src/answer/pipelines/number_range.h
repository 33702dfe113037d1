// The numbers that an element of a type can hold, for what a pipeline.toml compares or fills
// tensors with.
#ifndef FOLIOT_ANSWER_PIPELINES_NUMBER_RANGE_H_
#define FOLIOT_ANSWER_PIPELINES_NUMBER_RANGE_H_

#include "foundation/core/tensor.h"

namespace foliot {

struct NumberRange {
  double lowest = 0;
  double highest = 0;
  bool whole = false;  // numbers between whole ones are none of the type's

  bool contains(double number) const;
};

// Truth values are 0 and 1. Numbers that double cannot hold do not count.
NumberRange range_of(DataType type);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PIPELINES_NUMBER_RANGE_H_
