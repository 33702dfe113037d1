// GrpcRequest: conversion between gRPC's messages and Query.
#ifndef FOLIOT_EDGE_GRPC_GRPC_REQUEST_H_
#define FOLIOT_EDGE_GRPC_GRPC_REQUEST_H_

#include <string>
#include <vector>

#include "answer/inference/answer.h"
#include "answer/inference/query.h"
#include "edge/requests/content_type.h"
#include "edge/requests/request_parameters.h"
#include "foundation/base/status.h"

namespace inference {
class ModelInferRequest;
class ModelInferResponse;
class ModelStatistics;
class ModelMetadataResponse;
class ModelConfig;
}  // namespace inference

namespace foliot {

struct ModelInfo;
struct ModelStatistics;

struct GrpcRequest {
  // Arrival and transport deadline are the caller's to set. Views show the
  // message; input bytes show the message or `converted`.
  Query query;
  RequestParameters parameters;
  std::vector<ContentType> output_types;  // of query.outputs
  std::vector<std::string> converted;     // of contents narrower than their field, and of strings
  bool marks_final_response = false;      // triton_enable_empty_final_response
  bool unordered = false;                 // of a stream: its answer need not wait for earlier ones
};

// Errors: kInvalidArgument, kUnimplemented (shared memory, classification).
Result<GrpcRequest> decode_grpc_request(const inference::ModelInferRequest& message);

// The number under which a log shows the request; nothing if that is 0.
void encode_number(RequestId number, inference::ModelInferResponse& message);

// `request`: the one that it answers. REQUIRES: answer.served(). Takes its outputs.
void encode_grpc_response(Answer& answer, const GrpcRequest& request, inference::ModelInferResponse& message);

// `all`: its versions.
void encode_metadata(const ModelInfo& model, const std::vector<std::shared_ptr<const ModelInfo>>& all,
                     inference::ModelMetadataResponse& message);
void encode_config(const ModelInfo& model, inference::ModelConfig& message);
void encode_statistics(const ModelStatistics& statistics, inference::ModelStatistics& message);

}  // namespace foliot

#endif  // FOLIOT_EDGE_GRPC_GRPC_REQUEST_H_
