// Interface specs: a program's inputs and outputs as the outside sees them.
#ifndef FOLIOT_COMPILER_INTERFACE_SPECS_H_
#define FOLIOT_COMPILER_INTERFACE_SPECS_H_

#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dimensions.h"
#include "compiler/onnx_model.h"
#include "core/tensor.h"
#include "device/graph.h"

namespace foliot {

// `batching`: the leading dimension is left out.
std::vector<TensorSpec> input_specs(const Dimensions& dimensions, bool batching);

// `graphs`: one per bucket, in order. An output dimension is variable where the
// model declares so or where it differs between buckets; kUnimplemented if no
// dimension of the buckets explains it.
Result<std::vector<TensorSpec>> output_specs(const Dimensions& dimensions, const std::vector<OnnxValueInfo>& outputs,
                                             std::span<const Graph* const> graphs, bool batching);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_INTERFACE_SPECS_H_
