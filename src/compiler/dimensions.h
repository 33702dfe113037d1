// Dimensions: the sizes that a model is compiled for. Finds the batch dimension and
// gives every other variable dimension its values from the declared buckets.
#ifndef FOLIOT_COMPILER_DIMENSIONS_H_
#define FOLIOT_COMPILER_DIMENSIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "compiler/onnx_model.h"
#include "core/tensor.h"

namespace foliot {

struct Dimensions {
  // Whether all inputs share a leading dimension that may be the batch.
  bool batching = false;
  // Its size where the model fixes it, else 1; 1 without batching.
  int64_t own_batch_size = 1;
  // Values of the variable dimensions, one entry per bucket; at least one.
  std::vector<std::map<std::string, int64_t>> buckets;
  // The inputs, their variable dimensions under the names that buckets use.
  std::vector<OnnxValueInfo> inputs;

  // Of all inputs. `batch_size` is not looked at without batching.
  std::vector<Shape> input_shapes(int64_t batch_size, size_t bucket) const;
};

// Errors: kInvalidArgument where a dimension is variable and no bucket gives its
// values, or a bucket names a dimension that the model does not have.
Result<Dimensions> resolve_dimensions(const OnnxModel& model, const CompileOptions& options);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_DIMENSIONS_H_
