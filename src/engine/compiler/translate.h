// Translation of an ONNX model into a device's graph, for inputs of given shapes.
#ifndef FOLIOT_ENGINE_COMPILER_TRANSLATE_H_
#define FOLIOT_ENGINE_COMPILER_TRANSLATE_H_

#include <vector>

#include "engine/compiler/constant.h"
#include "engine/compiler/onnx_model.h"
#include "engine/compiler/operators/node_translation.h"
#include "engine/device/graph.h"
#include "foundation/base/status.h"
#include "foundation/core/tensor.h"

namespace foliot {

// `input_shapes`: one for each of model.inputs. Shapes are inferred and
// operators on constants evaluated on the way. Errors name the node:
// kUnimplemented for what no device can do, kInvalidArgument for a model that
// contradicts itself.
Result<Graph> translate(const OnnxModel& model, const std::vector<Shape>& input_shapes, Rebatch rebatch,
                        ConstantPool& pool);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_TRANSLATE_H_
