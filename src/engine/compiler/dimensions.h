// Dimensions: the sizes that a model is compiled for. Finds the batch dimension and
// gives every other variable dimension its values from the declared buckets.
#ifndef FOLIOT_ENGINE_COMPILER_DIMENSIONS_H_
#define FOLIOT_ENGINE_COMPILER_DIMENSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/compiler/compiler.h"
#include "engine/compiler/onnx_model.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// A dimension of inputs that is neither fixed nor the batch.
struct VariableDimension {
  std::string name;  // its symbol, or "INPUT_AXIS" where it has none
  // Where it first stands.
  size_t axis = 0;
  size_t rank = 0;
  std::vector<std::string> places{};  // all, for people: "dimension 1 of input 'x'"
};

struct Dimensions {
  // Whether all inputs have a leading dimension that may be the batch.
  bool batching = false;
  // With batching: whether that is a guess, since the leading dimensions have different names.
  bool is_guess = false;
  std::string why_not;  // without batching
  // Its size where the model fixes it, else 1; 1 without batching.
  int64_t own_batch_size = 1;
  // Whether constants of the model may hold that size: it is fixed, or model.toml names the
  // batch. Otherwise a 1 in a shape is a 1: the first dimension may be a set of points.
  bool writes_batch_size = false;
  // Values of the variable dimensions, one entry per bucket; at least one.
  std::vector<std::map<std::string, int64_t>> buckets;
  // The inputs, their variable dimensions under the names that buckets use.
  std::vector<OnnxValueInfo> inputs;
  std::vector<VariableDimension> variable;  // in their order in the inputs

  // Of all inputs. `batch_size` is not looked at without batching.
  std::vector<Shape> input_shapes(int64_t batch_size, const std::map<std::string, int64_t>& values) const;
};

// All but the buckets. `may_batch`: false to have all dimensions named.
// Errors: kInvalidArgument where an input has no shape, or the declared batch dimension
// is not the first one of each input.
Result<Dimensions> find_dimensions(const OnnxModel& model, const CompileOptions& options, bool may_batch = true);

// Names of variable dimensions that are the first ones of their inputs and no batch: points
// of a set, steps of a sequence. A request must have exactly a size that was compiled for.
std::vector<std::string> leading_dimensions(const Dimensions& dimensions);

// With the buckets. A single leading dimension without sizes gets those of the batch, or where
// others have sizes 1 in each bucket. Errors, besides: kInvalidArgument where no bucket gives the values of
// variable dimensions, naming all of these, or where a bucket names a dimension that the
// model does not have.
Result<Dimensions> resolve_dimensions(const OnnxModel& model, const CompileOptions& options, bool may_batch = true);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_DIMENSIONS_H_
