// Values of tensors, for what combines and compares them: labels (whole numbers and truth
// values), which are equal or not, and numbers (FP32 and FP64), which are near or not.
#ifndef FOLIOT_ANSWER_SELECTION_TENSOR_VALUES_H_
#define FOLIOT_ANSWER_SELECTION_TENSOR_VALUES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/core/tensor.h"

namespace foliot {

bool is_label(DataType type);
bool is_number(DataType type);

// REQUIRES: is_label(type) or is_number(type). Whole numbers beyond 2^53 are rounded.
std::vector<double> to_doubles(DataType type, std::string_view bytes);
// Rounded toward zero, and clipped to what the type holds, for labels.
std::string from_doubles(DataType type, std::span<const double> values);

}  // namespace foliot

#endif  // FOLIOT_ANSWER_SELECTION_TENSOR_VALUES_H_
