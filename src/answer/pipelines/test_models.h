// Models and pipelines for tests: decode (a variable number of bytes -> an image), mobilenet
// and resnet (an image -> scores of 1000 classes), bert (token ids -> scores, with buckets).
#ifndef FOLIOT_ANSWER_PIPELINES_TEST_MODELS_H_
#define FOLIOT_ANSWER_PIPELINES_TEST_MODELS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "answer/pipelines/spec_check.h"
#include "foundation/core/model_info.h"

namespace foliot {

inline TensorSpec test_tensor(std::string name, DataType type, Shape shape, std::vector<std::string> dimensions = {}) {
  dimensions.resize(shape.size());
  return {.name = std::move(name), .type = type, .shape = std::move(shape), .dimension_names = std::move(dimensions)};
}

inline ModelInfo test_model(std::string name, std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
  ModelInfo model{.name = std::move(name), .content = "content of it"};
  model.inputs = std::move(inputs);
  model.outputs = std::move(outputs);
  model.buckets = {Bucket()};
  model.runnables = {{.batch_sizes = {1, 2, 4, 8}}};
  return model;
}

inline ModelInfo test_decode(std::string name) {
  ModelInfo model = test_model(std::move(name), {test_tensor("bytes", DataType::kUint8, {-1}, {"bytes"})},
                               {test_tensor("image", DataType::kFloat32, {3, 224, 224})});
  model.buckets = {Bucket{{{"bytes", 1000}}}, Bucket{{{"bytes", 4000}}}};
  model.runnables = {{.batch_sizes = {1, 2}}};
  return model;
}

inline ModelInfo test_classifier(std::string name) {
  return test_model(std::move(name), {test_tensor("image", DataType::kFloat32, {3, 224, 224})},
                    {test_tensor("scores", DataType::kFloat32, {1000})});
}

inline ModelInfo test_bert(std::string name) {
  ModelInfo model = test_model(std::move(name),
                               {test_tensor("ids", DataType::kInt64, {-1}, {"sequence"}),
                                test_tensor("mask", DataType::kInt64, {-1}, {"sequence"})},
                               {test_tensor("hidden", DataType::kFloat32, {-1, 8}, {"sequence", ""}),
                                test_tensor("score", DataType::kFloat32, {2})});
  model.buckets = {Bucket{{{"sequence", 16}}}, Bucket{{{"sequence", 32}}}};
  return model;
}

inline StageSpec test_stage(std::string name, std::string model,
                            std::map<std::string, std::vector<TensorName>> inputs) {
  StageSpec stage;
  stage.name = std::move(name);
  stage.model = std::move(model);
  stage.inputs = std::move(inputs);
  return stage;
}

// decode -> cheap (mobilenet), and fine (resnet) where cheap's maximum is below 0.8. Lines:
// 10, 20, 30 of the stages, 31 of the condition, 40 of the output.
inline PipelineSpec test_cascade(std::string name = "animals") {
  PipelineSpec spec;
  spec.file = name + "/pipeline.toml";
  spec.content = "content";
  spec.default_slo = Duration::milliseconds(150);
  spec.stages = {test_stage("decode", name + ".decode", {{"bytes", {{"", "photo"}}}}),
                 test_stage("cheap", "mobilenet", {{"image", {{"decode", "image"}}}}),
                 test_stage("fine", "resnet", {{"image", {{"decode", "image"}}}})};
  for (size_t i = 0; i < spec.stages.size(); ++i) spec.stages[i].line = static_cast<int>(i + 1) * 10;
  spec.stages[2].when = {{.output = {"cheap", "scores"}, .condition = {.limit = 0.8}, .line = 31}};
  spec.outputs = {{.name = "answer", .from = {{"fine", "scores"}, {"cheap", "scores"}}, .fill = {}, .line = 40}};
  spec.name = std::move(name);
  return spec;
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_PIPELINES_TEST_MODELS_H_
