// Models to test with.
#ifndef FOLIOT_ANSWER_INFERENCE_CONFORMANCE_TEST_MODELS_H_
#define FOLIOT_ANSWER_INFERENCE_CONFORMANCE_TEST_MODELS_H_

#include "foundation/core/model_info.h"

namespace foliot {

// y = 2 x, rows of two numbers, batches up to 4.
inline ModelInfo doubling_model(ModelId id) {
  ModelInfo info;
  info.id = id;
  info.name = "doubling";
  info.only().batch_sizes = {1, 2, 4};
  info.inputs = {{"x", DataType::kFloat32, {2}, {""}}};
  info.outputs = {{"y", DataType::kFloat32, {2}, {""}, {"cat", "a \"dog\""}}};
  info.buckets = {Bucket{}};
  return info;
}

// Of a sequence of tokens: each token and the length of the bucket, and the sum.
inline ModelInfo sequence_model(ModelId id) {
  ModelInfo info;
  info.id = id;
  info.name = "sequence";
  info.only().batch_sizes = {1, 2};
  info.inputs = {{"tokens", DataType::kInt64, {-1}, {"length"}}};
  info.outputs = {{"pairs", DataType::kInt64, {-1, 2}, {"length", ""}}, {"sum", DataType::kInt64, {1}, {""}}};
  info.buckets = {{{{"length", 4}}}, {{{"length", 8}}}};
  info.only().seed_exec.resize(2);
  return info;
}

// Texts of up to 8 bytes; out come up to 3 words of up to 12 bytes together.
inline ModelInfo text_model(ModelId id) {
  ModelInfo info;
  info.id = id;
  info.name = "texts";
  info.only().batch_sizes = {1, 2};
  info.inputs = {
      {.name = "text", .type = DataType::kBytes, .shape = {}, .dimension_names = {}, .bound = RowBound{{}, 8}}};
  info.outputs = {
      {.name = "words", .type = DataType::kBytes, .shape = {-1}, .dimension_names = {""}, .bound = RowBound{{3}, 12}}};
  info.buckets = {Bucket{}};
  return info;
}

// y = not x, without a batch dimension.
inline ModelInfo whole_model(ModelId id) {
  ModelInfo info;
  info.id = id;
  info.name = "whole";
  info.batching = false;
  info.inputs = {{"x", DataType::kBool, {2, 2}, {"", ""}}};
  info.outputs = {{"y", DataType::kBool, {2, 2}, {"", ""}}};
  info.buckets = {Bucket{}};
  return info;
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_CONFORMANCE_TEST_MODELS_H_
