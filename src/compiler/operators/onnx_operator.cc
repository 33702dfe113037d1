#include "compiler/operators/onnx_operator.h"

namespace foliot {

const OnnxOperator* find_onnx_operator(std::string_view name) {
  for (const auto& family :
       {elementwise_operators(), convolution_operators(), matrix_operators(), normalization_operators(),
        reduction_operators(), shape_operators(), movement_operators(), resize_operators()}) {
    for (const OnnxOperator& candidate : family) {
      if (candidate.name == name) return &candidate;
    }
  }
  return nullptr;
}

}  // namespace foliot
