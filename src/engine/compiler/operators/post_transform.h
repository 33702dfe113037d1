// Post-transforms: what the operators of ai.onnx.ml do with the scores of a row before they
// give them out.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_POST_TRANSFORM_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_POST_TRANSFORM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compiler/operators/composer.h"

namespace foliot {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

// "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT".
Result<PostTransform> parse_post_transform(std::string_view name);

// Of scores[rows, columns], each row by itself.
ValueIndex post_transformed(Composer& c, ValueIndex scores, PostTransform transform);

// The classes of a classifier, from its attributes "classlabels_strings" or one of
// integers. Names are served as their positions.
Result<std::vector<int64_t>> class_labels(NodeTranslation& node, std::string_view integers);

// The labels of classes, int64[rows], by their positions.
ValueIndex labels_at(Composer& c, ValueIndex positions, const std::vector<int64_t>& labels);

// The label of one of two classes, int64[rows], by whether the score[rows, 1] is above a limit.
ValueIndex binary_labels(Composer& c, ValueIndex score, double limit, int64_t negative, int64_t positive);

// What a classifier reads: X as float32[rows, features]. Integers and float64 are converted.
ValueIndex feature_rows(Composer& c, NodeTranslation& node);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_POST_TRANSFORM_H_
