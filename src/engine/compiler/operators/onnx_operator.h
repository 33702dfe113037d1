// OnnxOperator: the translation of one operator of ONNX into operators of a device. The
// functions check their operands, since models come from outside, and their errors
// describe the node; the caller adds its name.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_ONNX_OPERATOR_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_ONNX_OPERATOR_H_

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

#include "engine/compiler/operators/node_translation.h"
#include "foundation/base/status.h"

namespace foliot {

inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

struct OnnxOperator {
  std::string_view name;
  // The first `inputs_min` must be there; those up to `inputs_max` may be.
  size_t inputs_min;
  size_t inputs_max;
  Status (*translate)(NodeTranslation& node);
};

// By family, one file each.
std::span<const OnnxOperator> elementwise_operators();
std::span<const OnnxOperator> convolution_operators();
std::span<const OnnxOperator> matrix_operators();
std::span<const OnnxOperator> normalization_operators();
std::span<const OnnxOperator> reduction_operators();
std::span<const OnnxOperator> shape_operators();
std::span<const OnnxOperator> movement_operators();
std::span<const OnnxOperator> resize_operators();

std::span<const OnnxOperator> indexing_operators();
std::span<const OnnxOperator> loss_operators();
std::span<const OnnxOperator> quantization_operators();
std::span<const OnnxOperator> attention_operators();
std::span<const OnnxOperator> recurrent_operators();
std::span<const OnnxOperator> signal_operators();
std::span<const OnnxOperator> sampling_operators();
std::span<const OnnxOperator> einsum_operators();
std::span<const OnnxOperator> ngram_operators();

// Of the domain ai.onnx.ml.
std::span<const OnnxOperator> tree_ensemble_operators();
std::span<const OnnxOperator> linear_model_operators();
std::span<const OnnxOperator> feature_operators();

// Of the domain com.microsoft: what onnxruntime's optimizer and quantizers write.
std::span<const OnnxOperator> microsoft_operators();
std::span<const OnnxOperator> microsoft_attention_operators();
std::span<const OnnxOperator> microsoft_quantization_operators();
std::span<const OnnxOperator> microsoft_weight_operators();

// Of the domain foliot: what the built-in steps of pipelines are made of (docs/STEPS.md).
std::span<const OnnxOperator> foliot_operators();

inline constexpr std::string_view kClassicDomain = "ai.onnx.ml", kMicrosoftDomain = "com.microsoft",
                                  kFoliotDomain = "foliot";

// nullptr if there is none of that name in that domain, ONNX's own being "".
const OnnxOperator* find_onnx_operator(std::string_view name, std::string_view domain);

// Why an operator cannot be served, whatever the model; empty if it could be.
std::string_view refusal_of_onnx_operator(std::string_view name, std::string_view domain);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_ONNX_OPERATOR_H_
