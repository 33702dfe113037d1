// Server and model metadata, the same over both protocols.
#ifndef FOLIOT_EDGE_REQUESTS_SERVER_INFO_H_
#define FOLIOT_EDGE_REQUESTS_SERVER_INFO_H_

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "answer/inference/personal_service.h"
#include "edge/requests/json_text.h"
#include "foundation/core/model_info.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {

inline constexpr std::string_view kServerName = "foliot";
std::string_view server_version();
// The series foliot_info: of which part of a server, its version and, of one that decides, its policy.
std::string info_metrics(std::string_view part, std::string_view policy = {});
// The parameter of a response that holds the request's number in the log.
inline constexpr std::string_view kRequestParameter = "foliot_request";
inline constexpr std::array<std::string_view, 4> kExtensions{"binary_tensor_data", "model_configuration",
                                                             "model_repository", "statistics"};

// What serves it.
inline std::string_view platform_of(const ModelInfo& model) {
  return model.find(kPersonalKind) == nullptr ? "foliot" : "foliot_personal";
}

// As metadata shows it: with the batch dimension, unknown extents as -1.
inline Shape metadata_shape(const ModelInfo& model, const TensorSpec& spec) {
  Shape shape = spec.shape;
  if (model.batching) shape.insert(shape.begin(), -1);
  return shape;
}

// What a model's configuration calls max_batch_size: 0, if it has no batch dimension.
inline uint32_t max_batch_size(const ModelInfo& model) { return model.batching ? model.batch_size_max() : 0; }

// A model's configuration has names of its own for datatypes: "TYPE_FP32", "TYPE_STRING".
inline std::string config_type(DataType type) {
  return type == DataType::kBytes ? "TYPE_STRING" : "TYPE_" + std::string(to_string(type));
}

// The stages of a pipeline as a JSON list of their names, models and versions.
inline std::string stages_json(const PipelineInfo& pipeline) {
  std::string list;
  for (const PipelineStage& stage : pipeline.stages) {
    list += list.empty() ? "[{\"name\":" : ",{\"name\":";
    append_json_string(list, stage.name);
    list += ",\"model\":";
    append_json_string(list, stage.model->name);
    list += ",\"version\":";
    append_json_string(list, stage.model->version);
    list += '}';
  }
  return list + "]";
}

// The parameters of a model's configuration: "labels.OUTPUT" for each output of classes, as
// a JSON list of their names, and "stages" of a pipeline.
inline std::map<std::string, std::string> config_parameters(const ModelInfo& model) {
  std::map<std::string, std::string> parameters;
  for (const TensorSpec& output : model.outputs) {
    std::string list;
    for (const std::string& label : output.labels) {
      list += list.empty() ? '[' : ',';
      append_json_string(list, label);
    }
    if (!list.empty()) parameters.emplace("labels." + output.name, list + "]");
  }
  if (model.pipeline != nullptr) parameters.emplace("stages", stages_json(*model.pipeline));
  return parameters;
}

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_SERVER_INFO_H_
