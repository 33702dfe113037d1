// Interface specs: a program's inputs and outputs as the outside sees them.
#ifndef FOLIOT_ENGINE_COMPILER_INTERFACE_SPECS_H_
#define FOLIOT_ENGINE_COMPILER_INTERFACE_SPECS_H_

#include <span>
#include <vector>

#include "engine/compiler/dimensions.h"
#include "engine/compiler/onnx_model.h"
#include "engine/compiler/output_extents.h"
#include "engine/device/graph.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// `batching`: the leading dimension is left out.
std::vector<TensorSpec> input_specs(const Dimensions& dimensions, bool batching);

// `graphs`: one per bucket, in order. An output dimension is variable where the
// model declares so, or where it follows a variable dimension of the inputs. One that is
// named after none of them has a name of its own (foundation/core/linear_extent.h where the rule is
// known), with its extent in each of `buckets`.
// Errors: kUnimplemented if an output has another number of dimensions in each bucket.
Result<std::vector<TensorSpec>> output_specs(const Dimensions& dimensions, const std::vector<OnnxValueInfo>& outputs,
                                             std::span<const Graph* const> graphs, bool batching,
                                             OutputExtents& extents, std::vector<OutputExtents::Sizes>* buckets);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_INTERFACE_SPECS_H_
