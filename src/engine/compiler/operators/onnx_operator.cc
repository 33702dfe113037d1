#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {

namespace {

using Family = std::span<const OnnxOperator>;

const OnnxOperator* find_in(std::initializer_list<Family> families, std::string_view name) {
  for (const Family& family : families) {
    for (const OnnxOperator& candidate : family) {
      if (candidate.name == name) return &candidate;
    }
  }
  return nullptr;
}

}  // namespace

const OnnxOperator* find_onnx_operator(std::string_view name, std::string_view domain) {
  if (domain == kClassicDomain) {
    return find_in({tree_ensemble_operators(), linear_model_operators(), feature_operators()}, name);
  }
  if (domain == kFoliotDomain) return find_in({foliot_operators()}, name);
  if (domain == kMicrosoftDomain) {
    return find_in({microsoft_operators(), microsoft_attention_operators(), microsoft_quantization_operators(),
                    microsoft_weight_operators()},
                   name);
  }
  if (!domain.empty()) return nullptr;
  return find_in(
      {elementwise_operators(), convolution_operators(), matrix_operators(), normalization_operators(),
       reduction_operators(), shape_operators(), movement_operators(), resize_operators(), indexing_operators(),
       loss_operators(), quantization_operators(), attention_operators(), recurrent_operators(), signal_operators(),
       sampling_operators(), einsum_operators(), ngram_operators()},
      name);
}

std::string_view refusal_of_onnx_operator(std::string_view name, std::string_view domain) {
  if (domain == "ai.onnx.preview.training") return "it trains, and only inference is served";
  if (domain == kClassicDomain && (name == "ZipMap" || name == "DictVectorizer" || name == "CastMap")) {
    return "it works on maps, and only tensors of numbers can be served";
  }
  if (domain == kClassicDomain && name == "CategoryMapper") {
    return "it maps strings, and only tensors of numbers can be served";
  }
  if (domain == "com.microsoft.nchwc") {
    return "it is of the layout of one processor; let onnxruntime save the model at its level 'extended' or below";
  }
  if (!domain.empty()) return {};
  struct Refusal {
    std::string_view reason;
    std::initializer_list<std::string_view> names;
  };
  static const Refusal refusals[] = {
      {"the shape of its result depends on the data, but a program's shapes are fixed",
       {"Compress", "NonMaxSuppression", "NonZero", "Unique"}},
      {"its result is random",
       {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}},
      {"it works on sequences, optionals, strings or files, and only tensors of numbers can be served",
       {"ConcatFromSequence", "ImageDecoder", "Optional", "OptionalGetElement", "OptionalHasElement", "RegexFullMatch",
        "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength",
        "SequenceMap", "SplitToSequence", "StringConcat", "StringNormalizer", "StringSplit"}},
  };
  for (const Refusal& refusal : refusals) {
    for (std::string_view candidate : refusal.names) {
      if (candidate == name) return refusal.reason;
    }
  }
  return {};
}

}  // namespace foliot
