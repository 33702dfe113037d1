// DeclaredTensor: an input or output as a file beside the model describes it, which the model must have.
#ifndef FOLIOT_ENGINE_COMPILER_DECLARED_TENSOR_H_
#define FOLIOT_ENGINE_COMPILER_DECLARED_TENSOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/compiler/onnx_model.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

struct DeclaredTensor {
  std::string name;
  bool is_output = false;
  std::optional<DataType> type;  // nullopt: any
  // The batch included; -1: of any extent. Nullopt: not said.
  std::optional<std::vector<int64_t>> dimensions;
  std::string where;  // "config.pbtxt:7", for errors
};

// Gives dimensions of inputs that vary in the model the extent that is declared, and all of the same symbol with them:
// they need no bucket then. Not first dimensions, which may be the batch, nor symbols in `buckets`.
void fix_declared_extents(const std::vector<DeclaredTensor>& declared,
                          const std::map<std::string, std::vector<int64_t>>& buckets, OnnxModel& model);

// Whether the model has all of these, and no input beside those that are declared where one is. An extent that varies
// in the model may be declared fixed, and the other way round.
// Errors: kInvalidArgument naming the place, the tensor, and what it is here and there.
Status check_declared_tensors(const std::vector<DeclaredTensor>& declared, const OnnxModel& model);

// What of them can change the result of a check, as text.
std::string fingerprint_of(const std::vector<DeclaredTensor>& declared);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_DECLARED_TENSOR_H_
