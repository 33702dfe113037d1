// Prediction: the outputs of one call, as a model computed them from its inputs.
//
// Immutable, and shared by all answers that are made of it.
#ifndef FOLIOT_CACHE_PREDICTION_H_
#define FOLIOT_CACHE_PREDICTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

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

}  // namespace foliot

#endif  // FOLIOT_CACHE_PREDICTION_H_
