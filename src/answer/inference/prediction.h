// Prediction: the outputs of one call, as a model computed them from its inputs.
//
// Immutable once it is made, and shared by all answers that are made of it.
#ifndef FOLIOT_ANSWER_INFERENCE_PREDICTION_H_
#define FOLIOT_ANSWER_INFERENCE_PREDICTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "answer/inference/answer.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct Prediction {
  struct Output {
    TensorSpec spec;
    Shape shape;  // with the batch dimension
    bool padded = false;
    std::string bytes;
  };
  std::vector<Output> outputs;  // those that were asked for, in that order

  // Of memory, about.
  size_t byte_size() const {
    size_t bytes = sizeof *this;
    for (const Output& output : outputs) bytes += sizeof output + output.spec.name.size() + output.bytes.size();
    return bytes;
  }
};

// The outputs of an answer, which has them no longer. REQUIRES: answer.served().
inline Prediction take_prediction(Answer& answer) {
  Prediction prediction;
  for (uint32_t i = 0; i < answer.output_count(); ++i) {
    prediction.outputs.push_back(
        {answer.output_spec(i), answer.output_shape(i), answer.output_is_padded(i), answer.take_output(i)});
  }
  return prediction;
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_PREDICTION_H_
