// The real server on a loopback port, driven by gRPC's own client.
#include "edge/grpc/grpc_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <health.grpc.pb.h>
#include <inference.grpc.pb.h>

#include <array>
#include <boost/asio.hpp>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "edge/frontend/test_server.h"
#include "foundation/access/test_certificates.h"

namespace foliot {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using inference::ModelStreamInferResponse;
using ::testing::HasSubstr;

std::string raw(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

ModelInferRequest doubling_request(const std::vector<float>& values) {
  ModelInferRequest request;
  request.set_model_name("doubling");
  request.set_id("42");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  input->add_shape(static_cast<int64_t>(values.size() / 2));
  input->add_shape(2);
  request.add_raw_input_contents(raw(values));
  return request;
}

class GrpcServerTest : public ::testing::Test {
 protected:
  static FrontendOptions options() {
    FrontendOptions options;
    options.body_bytes_max = 1 << 20;
    options.requests_in_flight_max = 4096;
    return options;
  }
  grpc::Status infer(const ModelInferRequest& request, ModelInferResponse& response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, &response);
  }
  grpc::Status infer(const ModelInferRequest& request) {
    ModelInferResponse response;
    return infer(request, response);
  }
  // Calls a method whose request needs nothing but a model's name, or nothing.
  template <typename Response, typename Method, typename Request>
  Response call(Method method, const Request& request, grpc::StatusCode expected = grpc::StatusCode::OK) {
    grpc::ClientContext context;
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    EXPECT_EQ(status.error_code(), expected) << status.error_message();
    return response;
  }

  std::string error_of_load(const inference::RepositoryModelLoadRequest& request) {
    grpc::ClientContext context;
    inference::RepositoryModelLoadResponse response;
    const grpc::Status status = stub_->RepositoryModelLoad(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }

  TestServer server_{options()};
  FakeController& controller_ = server_.controller;
  std::shared_ptr<grpc::Channel> channel_ = grpc::CreateChannel(
      fmt::format("127.0.0.1:{}", server_.frontend->grpc_port()), grpc::InsecureChannelCredentials());
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_ = inference::GRPCInferenceService::NewStub(channel_);
};

using Stub = inference::GRPCInferenceService::Stub;

TEST_F(GrpcServerTest, DescribesItselfAndItsModels) {
  using namespace inference;  // NOLINT: the messages of the protocol
  EXPECT_TRUE(call<ServerLiveResponse>(&Stub::ServerLive, ServerLiveRequest()).live());
  EXPECT_TRUE(call<ServerReadyResponse>(&Stub::ServerReady, ServerReadyRequest()).ready());
  EXPECT_EQ(call<ServerMetadataResponse>(&Stub::ServerMetadata, ServerMetadataRequest()).name(), "foliot");
  ModelMetadataRequest metadata;
  metadata.set_name("sequence");
  const auto described = call<ModelMetadataResponse>(&Stub::ModelMetadata, metadata);
  EXPECT_EQ(described.inputs(0).datatype(), "INT64");
  EXPECT_EQ(described.inputs(0).shape_size(), 2);
  ModelConfigRequest config;
  config.set_name("doubling");
  const auto described_config = call<ModelConfigResponse>(&Stub::ModelConfig, config).config();
  EXPECT_EQ(described_config.max_batch_size(), 4);
  EXPECT_EQ(described_config.parameters().at("labels.y").string_value(), R"(["cat","a \"dog\""])");
  config.set_name("nope");
  call<ModelConfigResponse>(&Stub::ModelConfig, config, grpc::StatusCode::NOT_FOUND);
  ModelReadyRequest ready;
  ready.set_name("whole");
  EXPECT_TRUE(call<ModelReadyResponse>(&Stub::ModelReady, ready).ready());
}

TEST_F(GrpcServerTest, ListsLoadsAndUnloadsModels) {
  using namespace inference;  // NOLINT: the messages of the protocol
  const auto index = call<RepositoryIndexResponse>(&Stub::RepositoryIndex, RepositoryIndexRequest());
  ASSERT_EQ(index.models_size(), 3);
  EXPECT_EQ(index.models(0).state(), "READY");
  RepositoryModelLoadRequest load;
  load.set_model_name("doubling");
  call<RepositoryModelLoadResponse>(&Stub::RepositoryModelLoad, load);
  load.set_model_name("absent");
  call<RepositoryModelLoadResponse>(&Stub::RepositoryModelLoad, load, grpc::StatusCode::NOT_FOUND);
  load.set_model_name("movies");
  (*load.mutable_parameters())["version"].set_int64_param(7);
  (*load.mutable_parameters())["compare"].set_bool_param(false);
  EXPECT_EQ(error_of_load(load), "version '7', compare false, take true, roll_back false, unknown ''");
  (*load.mutable_parameters())["version"].set_bool_param(true);
  EXPECT_THAT(error_of_load(load), HasSubstr("parameter 'version' must be the number of a version"));
  RepositoryModelUnloadRequest unload;
  unload.set_model_name("doubling");
  call<RepositoryModelUnloadResponse>(&Stub::RepositoryModelUnload, unload);
}

TEST_F(GrpcServerTest, SharedMemoryIsNeverRegistered) {
  using namespace inference;  // NOLINT: the messages of the protocol
  const auto status =
      call<SystemSharedMemoryStatusResponse>(&Stub::SystemSharedMemoryStatus, SystemSharedMemoryStatusRequest());
  EXPECT_TRUE(status.regions().empty());
  call<SystemSharedMemoryUnregisterResponse>(&Stub::SystemSharedMemoryUnregister,
                                             SystemSharedMemoryUnregisterRequest());
  call<CudaSharedMemoryUnregisterResponse>(&Stub::CudaSharedMemoryUnregister, CudaSharedMemoryUnregisterRequest());
  call<CudaSharedMemoryRegisterResponse>(&Stub::CudaSharedMemoryRegister, CudaSharedMemoryRegisterRequest(),
                                         grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(GrpcServerTest, ShowsItsSettingsAndKeepsThem) {
  using namespace inference;  // NOLINT: the messages of the protocol
  TraceSettingRequest trace;
  EXPECT_EQ(call<TraceSettingResponse>(&Stub::TraceSetting, trace).settings().at("trace_level").value(0), "OFF");
  trace.set_model_name("doubling");
  (*trace.mutable_settings())["trace_level"].add_value("OFF");
  (*trace.mutable_settings())["trace_rate"];
  call<TraceSettingResponse>(&Stub::TraceSetting, trace);
  trace.set_model_name("nope");
  call<TraceSettingResponse>(&Stub::TraceSetting, trace, grpc::StatusCode::NOT_FOUND);
  trace.clear_model_name();
  (*trace.mutable_settings())["trace_level"].add_value("TIMESTAMPS");
  call<TraceSettingResponse>(&Stub::TraceSetting, trace, grpc::StatusCode::UNIMPLEMENTED);

  LogSettingsRequest log;
  const auto shown = call<LogSettingsResponse>(&Stub::LogSettings, log).settings();
  EXPECT_TRUE(shown.at("log_info").bool_param());
  EXPECT_EQ(shown.at("log_verbose_level").uint32_param(), 0u);
  EXPECT_EQ(shown.at("log_format").string_param(), "default");
  (*log.mutable_settings())["log_info"].set_bool_param(true);
  call<LogSettingsResponse>(&Stub::LogSettings, log);
  (*log.mutable_settings())["log_info"].set_bool_param(false);
  call<LogSettingsResponse>(&Stub::LogSettings, log, grpc::StatusCode::UNIMPLEMENTED);
  (*log.mutable_settings())["log_colour"].set_bool_param(false);
  (*log.mutable_settings()).erase("log_info");
  call<LogSettingsResponse>(&Stub::LogSettings, log, grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcServerTest, ChecksHealth) {
  using namespace grpc::health::v1;  // NOLINT: the messages of the protocol
  const auto stub = Health::NewStub(channel_);
  const auto check = [&](const std::string& service, HealthCheckResponse& response) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    return stub->Check(&context, request, &response).error_code();
  };
  HealthCheckResponse response;
  EXPECT_EQ(check("", response), grpc::StatusCode::OK);
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  EXPECT_EQ(check("doubling", response), grpc::StatusCode::OK);
  EXPECT_EQ(check("nope", response), grpc::StatusCode::NOT_FOUND);
  server_.names.drain();
  EXPECT_EQ(check("inference.GRPCInferenceService", response), grpc::StatusCode::OK);
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
}

TEST_F(GrpcServerTest, ListsHealth) {
  using namespace grpc::health::v1;  // NOLINT: the messages of the protocol
  const auto list = [&] {
    grpc::ClientContext context;
    HealthListResponse response;
    EXPECT_TRUE(Health::NewStub(channel_)->List(&context, HealthListRequest(), &response).ok());
    std::map<std::string, bool> serving;
    for (const auto& [name, health] : response.statuses()) {
      serving[name] = health.status() == HealthCheckResponse::SERVING;
    }
    return serving;
  };
  const std::map<std::string, bool> all = list();
  EXPECT_TRUE(all.at(""));
  EXPECT_TRUE(all.at("inference.GRPCInferenceService"));
  EXPECT_TRUE(all.at("doubling"));
  EXPECT_EQ(all.count("nope"), 0u);
  server_.names.drain();
  EXPECT_FALSE(list().at(""));
}

TEST_F(GrpcServerTest, UnknownMethodsAreRefusedInWords) {
  grpc::GenericStub stub(channel_);
  const auto refusal = [&](const std::string& method) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(), &queue);
    grpc::ByteBuffer response;
    grpc::Status status;
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    return status.error_message();
  };
  EXPECT_THAT(refusal("/grpc.health.v1.Health/Watch"), HasSubstr("Watch': call Check now and then"));
  EXPECT_THAT(refusal("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"), HasSubstr("no reflection"));
  EXPECT_THAT(refusal("/a.B/C"), HasSubstr("no method '/a.B/C' on this port"));
  EXPECT_TRUE(infer(doubling_request({1, 2})).ok());
}

TEST_F(GrpcServerTest, InfersFromRawContents) {
  ModelInferResponse response;
  const grpc::Status status = infer(doubling_request({1, 2, 3, 4}), response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.id(), "42");
  EXPECT_EQ(response.model_version(), "1");
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "y");
  EXPECT_EQ(response.outputs(0).shape(0), 2);
  ASSERT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_EQ(response.raw_output_contents(0), raw({2, 4, 6, 8}));
}

TEST_F(GrpcServerTest, InfersFromTypedContents) {
  ModelInferRequest request = doubling_request({0, 0});
  request.clear_raw_input_contents();
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(3);
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(4);
  ModelInferResponse response;
  ASSERT_TRUE(infer(request, response).ok());
  EXPECT_EQ(response.raw_output_contents(0), raw({6, 8}));
}

TEST_F(GrpcServerTest, NarrowTypedContentsMustFitTheirDatatype) {
  ModelInfo bytes = whole_model(ModelId(9));
  bytes.name = "bytes";
  bytes.inputs[0].type = DataType::kUint8;
  server_.add_model(bytes, compute_whole);
  ModelInferRequest request;
  request.set_model_name("bytes");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("UINT8");
  input->add_shape(2);
  input->add_shape(2);
  for (const uint32_t value : {0u, 1u, 0u, 255u}) input->mutable_contents()->add_uint_contents(value);
  ModelInferResponse response;
  ASSERT_TRUE(infer(request, response).ok());
  EXPECT_EQ(response.raw_output_contents(0), std::string("\1\0\1\0", 4));
  input->mutable_contents()->set_uint_contents(3, 256);
  EXPECT_EQ(infer(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcServerTest, PadsAndCrops) {
  ModelInferRequest request;
  request.set_model_name("sequence");
  auto* input = request.add_inputs();
  input->set_name("tokens");
  input->set_datatype("INT64");
  input->add_shape(1);
  input->add_shape(3);
  for (const int64_t token : {7, 8, 9}) input->mutable_contents()->add_int64_contents(token);
  request.add_outputs()->set_name("pairs");
  ModelInferResponse response;
  ASSERT_TRUE(infer(request, response).ok());
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).shape(1), 3);
  int64_t pairs[6];
  ASSERT_EQ(response.raw_output_contents(0).size(), sizeof pairs);
  std::memcpy(pairs, response.raw_output_contents(0).data(), sizeof pairs);
  EXPECT_THAT(pairs, ::testing::ElementsAre(7, 4, 8, 4, 9, 4));
}

TEST_F(GrpcServerTest, WhatIsNotUnderstoodIsRefused) {
  const auto infer_with = [&](const std::string& name, const auto& set) {
    ModelInferRequest request = doubling_request({1, 2});
    set((*request.mutable_parameters())[name]);
    return infer(request).error_code();
  };
  using inference::InferParameter;
  EXPECT_EQ(infer_with("sequence_id", [](InferParameter& p) { p.set_int64_param(7); }), grpc::UNIMPLEMENTED);
  EXPECT_EQ(infer_with("sequence_id", [](InferParameter& p) { p.set_string_param("a"); }), grpc::UNIMPLEMENTED);
  EXPECT_EQ(infer_with("sequence_end", [](InferParameter& p) { p.set_bool_param(true); }), grpc::UNIMPLEMENTED);
  EXPECT_EQ(infer_with("priority", [](InferParameter& p) { p.set_uint64_param(1); }), grpc::UNIMPLEMENTED);
  EXPECT_EQ(infer_with("priority", [](InferParameter& p) { p.set_uint64_param(0); }), grpc::OK);
  EXPECT_EQ(infer_with("sequence_id", [](InferParameter& p) { p.set_int64_param(0); }), grpc::OK);
  EXPECT_EQ(infer_with("urgency", [](InferParameter& p) { p.set_int64_param(0); }), grpc::OK);

  inference::RepositoryModelLoadRequest load;
  load.set_model_name("doubling");
  (*load.mutable_parameters())["config"].set_string_param("{}");
  call<inference::RepositoryModelLoadResponse>(&Stub::RepositoryModelLoad, load, grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(GrpcServerTest, ReadyWhileAModelIsServedOrNoneIsWanted) {
  using namespace inference;  // NOLINT: the messages of the protocol
  const auto ready = [&] { return call<ServerReadyResponse>(&Stub::ServerReady, ServerReadyRequest()).ready(); };
  server_.catalog.put({"broken", "1", ModelState::kUnavailable, "why", nullptr});
  EXPECT_TRUE(ready());
  for (const auto& [name, entry] : server_.catalog.snapshot()) {
    if (name != "broken") server_.catalog.remove(name);
  }
  EXPECT_FALSE(ready());
  server_.catalog.remove("broken");
  EXPECT_TRUE(ready());
}

TEST_F(GrpcServerTest, BadInputIsNamed) {
  const auto expect = [&](const ModelInferRequest& request, grpc::StatusCode code, const char* part) {
    const grpc::Status status = infer(request);
    EXPECT_EQ(status.error_code(), code);
    EXPECT_THAT(status.error_message(), HasSubstr(part));
  };
  ModelInferRequest request = doubling_request({1, 2});
  request.set_model_name("nope");
  expect(request, grpc::StatusCode::NOT_FOUND, "unknown model 'nope'");
  request = doubling_request({1, 2});
  request.set_model_version("3");
  expect(request, grpc::StatusCode::NOT_FOUND, "no version '3'");
  request = doubling_request({1, 2});
  request.mutable_inputs(0)->set_name("z");
  expect(request, grpc::StatusCode::INVALID_ARGUMENT, "unknown input 'z'");
  request = doubling_request({1, 2});
  request.set_raw_input_contents(0, "abc");
  expect(request, grpc::StatusCode::INVALID_ARGUMENT, "expected 8 bytes");
  request = doubling_request({1, 2});
  request.add_raw_input_contents("abc");
  expect(request, grpc::StatusCode::INVALID_ARGUMENT, "raw_input_contents");
  request = doubling_request({1, 2});
  (*request.mutable_parameters())["timeout"].set_int64_param(-1);
  expect(request, grpc::StatusCode::INVALID_ARGUMENT, "'timeout'");
  (*request.mutable_parameters())["timeout"].set_string_param("1");
  expect(request, grpc::StatusCode::INVALID_ARGUMENT, "'timeout'");
  request = doubling_request({1, 2});
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  expect(request, grpc::StatusCode::UNIMPLEMENTED, "shared memory");
  expect(doubling_request(std::vector<float>(1 << 19)), grpc::StatusCode::RESOURCE_EXHAUSTED, "");
}

TEST_F(GrpcServerTest, ContentsAreRawOrTypedAndNotBoth) {
  ModelInferRequest request = doubling_request({1, 2});
  request.mutable_inputs(0)->mutable_contents();
  EXPECT_TRUE(infer(request).ok()) << "empty contents hold nothing that could be lost";
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(5);
  const grpc::Status status = infer(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("input 'x' has 'contents', and raw_input_contents is there, too"));
}

TEST_F(GrpcServerTest, TheTightestDeadlineCounts) {
  ModelInferRequest request = doubling_request({1, 2});
  (*request.mutable_parameters())["timeout"].set_uint64_param(3'000'000);
  EXPECT_TRUE(infer(request).ok());
  request.clear_parameters();
  EXPECT_TRUE(infer(request).ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  ModelInferResponse response;
  EXPECT_TRUE(stub_->ModelInfer(&context, request, &response).ok());

  const std::vector<Request> requests = controller_.submitted();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].answer_by() - requests[0].arrival, Duration::seconds(3));
  EXPECT_TRUE(requests[1].best_effort());
  // gRPC rounds what it sends.
  EXPECT_LE(requests[2].deadline - requests[2].arrival, Duration::seconds(61));
  EXPECT_GT(requests[2].deadline - requests[2].arrival, Duration());
}

TEST_F(GrpcServerTest, RefusalsHaveTheirCodes) {
  const auto expect = [&](Refusal refusal, grpc::StatusCode code, bool may_help) {
    controller_.refuse(refusal, "why", Duration::milliseconds(1500));
    grpc::ClientContext context;
    ModelInferResponse response;
    const grpc::Status status = stub_->ModelInfer(&context, doubling_request({1, 2}), &response);
    EXPECT_EQ(status.error_code(), code);
    EXPECT_THAT(status.error_message(), HasSubstr("earliest completion 1500.000 ms"));
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto reason = metadata.find("foliot-refusal");
    ASSERT_NE(reason, metadata.end());
    EXPECT_EQ(std::string(reason->second.data(), reason->second.size()), to_string(refusal));
    // A client that tries again by itself must not where no try can help.
    EXPECT_EQ(metadata.count("retry-after") == 1, may_help) << to_string(refusal);
    const auto pushback = metadata.find("grpc-retry-pushback-ms");
    ASSERT_EQ(pushback == metadata.end(), may_help) << to_string(refusal);
    EXPECT_TRUE(may_help || std::string(pushback->second.data(), pushback->second.size()) == "-1");
  };
  expect(Refusal::kUnmeetable, grpc::StatusCode::UNAVAILABLE, false);
  expect(Refusal::kOverload, grpc::StatusCode::RESOURCE_EXHAUSTED, true);
  expect(Refusal::kExpired, grpc::StatusCode::DEADLINE_EXCEEDED, false);
  expect(Refusal::kWorkerLost, grpc::StatusCode::UNAVAILABLE, true);
}

TEST_F(GrpcServerTest, ClientsThatRetryByThemselvesDoNotRetryWhatCannotBeMet) {
  const std::string policy =
      R"({"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.001s","maxBackoff":"0.01s",)"
      R"("backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]})";
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(policy);
  const auto stub = inference::GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
      fmt::format("127.0.0.1:{}", server_.frontend->grpc_port()), grpc::InsecureChannelCredentials(), arguments));
  const auto tries = [&](Refusal refusal) {
    controller_.refuse(refusal, "why");
    const size_t before = controller_.submitted().size();
    grpc::ClientContext context;
    ModelInferResponse response;
    EXPECT_EQ(stub->ModelInfer(&context, doubling_request({1, 2}), &response).error_code(),
              grpc::StatusCode::UNAVAILABLE);
    return controller_.submitted().size() - before;
  };
  EXPECT_EQ(tries(Refusal::kUnmeetable), 1u);
  EXPECT_EQ(tries(Refusal::kWorkerLost), 4u);
}

TEST_F(GrpcServerTest, RefusalsNameTheDeadlineOfTheCall) {
  controller_.refuse(Refusal::kUnmeetable);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  ModelInferRequest request = doubling_request({1, 2});
  ModelInferResponse response;
  EXPECT_THAT(stub_->ModelInfer(&context, request, &response).error_message(),
              HasSubstr("ms after arrival (deadline of the gRPC call)"));
  (*request.mutable_parameters())["timeout"].set_uint64_param(30);
  EXPECT_THAT(infer(request).error_message(), HasSubstr("0.030 ms after arrival (parameter 'timeout', in microsec"));
}

TEST_F(GrpcServerTest, AnswersAndRefusalsCarryTheirNumberInTheLog) {
  const auto number_in = [](const grpc::ClientContext& context) {
    const auto found = context.GetServerTrailingMetadata().find("foliot-request");
    return found == context.GetServerTrailingMetadata().end() ? "none"
                                                              : std::string(found->second.data(), found->second.size());
  };
  grpc::ClientContext served;
  ModelInferResponse response;
  ASSERT_TRUE(stub_->ModelInfer(&served, doubling_request({1, 2}), &response).ok());
  controller_.refuse(Refusal::kOverload);
  grpc::ClientContext refused;
  ModelInferResponse nothing;
  const grpc::Status refusal = stub_->ModelInfer(&refused, doubling_request({1, 2}), &nothing);
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  ASSERT_TRUE(stream->Write(doubling_request({1, 2})));
  ModelStreamInferResponse streamed;
  ASSERT_TRUE(stream->Read(&streamed));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());

  std::vector<std::string> numbers;
  for (const Request& request : controller_.submitted()) numbers.push_back(std::to_string(request.id.value()));
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_EQ(number_in(served), numbers[0]);
  EXPECT_EQ(response.parameters().at("foliot_request").string_param(), numbers[0]);
  EXPECT_EQ(number_in(refused), numbers[1]);
  EXPECT_THAT(refusal.error_message(), HasSubstr("; request " + numbers[1]));
  EXPECT_THAT(streamed.error_message(), HasSubstr("; request " + numbers[2]));
  EXPECT_EQ(streamed.infer_response().parameters().at("foliot_request").string_param(), numbers[2]);
}

TEST_F(GrpcServerTest, AnAnswerThatLeavesTooLateIsARefusal) {
  ModelInferRequest request = doubling_request({1, 2});
  (*request.mutable_parameters())["timeout"].set_int64_param(1);
  ModelInferResponse response;
  EXPECT_EQ(infer(request, response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(response.raw_output_contents_size(), 0);

  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  ASSERT_TRUE(stream->Write(request));
  ModelStreamInferResponse streamed;
  ASSERT_TRUE(stream->Read(&streamed));
  EXPECT_THAT(streamed.error_message(), HasSubstr("refused the request: late"));
  EXPECT_EQ(streamed.infer_response().id(), "42");
  EXPECT_EQ(streamed.infer_response().raw_output_contents_size(), 0);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcServerTest, ACallThatIsCancelledCancelsItsRows) {
  controller_.hold();
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  ModelInferResponse response;
  grpc::Status status;
  auto reader = stub_->AsyncModelInfer(&context, doubling_request({1, 2, 3, 4}), &queue);
  reader->Finish(&response, &status, nullptr);
  controller_.await_submitted(2);
  context.TryCancel();
  controller_.await_cancelled(2);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(GrpcServerTest, StreamsCarryManyRequestsAtOnce) {
  constexpr int kRequests = 3000;  // more than a stream may have unanswered
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  std::thread writer([&] {
    for (int i = 0; i < kRequests; ++i) {
      ModelInferRequest request = doubling_request({static_cast<float>(i), 0});
      request.set_id(std::to_string(i));
      if (i == 0) (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
      EXPECT_TRUE(stream->Write(request));
    }
    stream->WritesDone();
  });
  std::set<std::string> ids;
  ModelStreamInferResponse response;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.error_message(), "");
    const ModelInferResponse& answer = response.infer_response();
    EXPECT_TRUE(ids.insert(answer.id()).second);
    EXPECT_EQ(answer.raw_output_contents(0), raw({2 * std::stof(answer.id()), 0}));
    EXPECT_EQ(answer.parameters().contains("triton_final_response"), answer.id() == "0");
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(ids.size(), static_cast<size_t>(kRequests));
}

TEST_F(GrpcServerTest, AStreamIsAnsweredInItsOrderButWhereItNeedNotBe) {
  controller_.hold();
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  const auto send = [&](const char* id, const char* model = "doubling") {
    ModelInferRequest request = doubling_request({1, 2});
    request.set_id(id);
    request.set_model_name(model);
    if (std::string_view(id) == "free") (*request.mutable_parameters())["unordered"].set_bool_param(true);
    ASSERT_TRUE(stream->Write(request));
  };
  for (const char* id : {"first", "second", "free", "last"}) send(id);
  send("bad", "nope");
  controller_.await_submitted(4);
  // The first is answered last.
  const std::vector<Request> submitted = controller_.submitted();
  for (const size_t i : {3, 1, 2}) controller_.cancel(submitted[i].id, Refusal::kCancelled);
  ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.infer_response().id(), "free");
  controller_.release();
  for (const char* id : {"first", "second", "last", "bad"}) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.infer_response().id(), id);
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcServerTest, AStreamOutlivesItsErrors) {
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  ModelInferRequest bad = doubling_request({1, 2});
  bad.set_model_name("nope");
  bad.set_id("bad");
  ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Write(bad));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.error_message(), HasSubstr("unknown model"));
  EXPECT_EQ(response.infer_response().id(), "bad");
  ASSERT_TRUE(stream->Write(doubling_request({1, 2})));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error_message(), "");
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcServerTest, AStreamThatIsCancelledCancelsItsRows) {
  controller_.hold();
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream->Write(doubling_request({1, 2, 3, 4})));
  controller_.await_submitted(6);
  context.TryCancel();
  controller_.await_cancelled(6);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

class GrpcBodiesTest : public ::testing::Test {
 protected:
  static FrontendOptions options() {
    FrontendOptions options;
    options.body_bytes_max = 8 << 20;
    options.bodies_bytes_max = 32 << 20;
    return options;
  }
  // A parameter that is ignored makes it so long.
  static ModelInferRequest request_of(size_t mebibytes) {
    ModelInferRequest request = doubling_request({1, 2});
    (*request.mutable_parameters())["padding"].set_string_param(std::string(mebibytes << 20, ' '));
    return request;
  }

  TestServer server_{options()};
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_ =
      inference::GRPCInferenceService::NewStub(grpc::CreateChannel(
          fmt::format("127.0.0.1:{}", server_.frontend->grpc_port()), grpc::InsecureChannelCredentials()));
};

TEST_F(GrpcBodiesTest, ASourceHasNoMoreOfTheMemoryForBodiesThanItLeavesToOthers) {
  server_.controller.hold();
  struct Call {
    grpc::ClientContext context;
    ModelInferResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<ModelInferResponse>> reader;
  };
  std::array<Call, 2> held;
  grpc::CompletionQueue queue;
  for (size_t i = 0; i < held.size(); ++i) {
    held[i].reader = stub_->AsyncModelInfer(&held[i].context, request_of(6), &queue);
    held[i].reader->Finish(&held[i].response, &held[i].status, nullptr);
    server_.controller.await_submitted(i + 1);
  }
  const auto ask = [this] {
    grpc::ClientContext context;
    ModelInferResponse response;
    return stub_->ModelInfer(&context, request_of(6), &response);
  };
  const grpc::Status refused = ask();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("bodies of 'ipv4:127.0.0.1' under way take"));
  server_.controller.release();
  void* tag = nullptr;
  bool ok = false;
  for (const Call& call : held) {
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(call.status.ok()) << call.status.error_message();
  }
  EXPECT_TRUE(ask().ok());
}

// Together they are more than may be under way: it is read on as requests are answered.
TEST_F(GrpcBodiesTest, AStreamThatIsNotReadOnIsAnsweredAllTheSame) {
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  std::thread writer([&] {
    for (int i = 0; i < 60; ++i) EXPECT_TRUE(stream->Write(request_of(1)));
    stream->WritesDone();
  });
  int answers = 0;
  for (ModelStreamInferResponse response; stream->Read(&response); ++answers) EXPECT_EQ(response.error_message(), "");
  writer.join();
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answers, 60);
}

TEST_F(GrpcServerTest, DrainingRefuses) {
  server_.names.drain();
  const grpc::Status status = infer(doubling_request({1, 2}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("draining"));
}

TEST_F(GrpcServerTest, StopsWithAnOpenStream) {
  grpc::ClientContext context;
  auto stream = stub_->ModelStreamInfer(&context);
  ASSERT_TRUE(stream->Write(doubling_request({1, 2})));
  ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Read(&response));
  controller_.stop();
  server_.frontend->stop();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(GrpcServerTest, CountsWhatHappened) {
  ASSERT_TRUE(infer(doubling_request({1, 2, 3, 4})).ok());
  inference::ModelStatisticsRequest request;
  request.set_name("doubling");
  const auto one = call<inference::ModelStatisticsResponse>(&Stub::ModelStatistics, request);
  ASSERT_EQ(one.model_stats_size(), 1);
  EXPECT_EQ(one.model_stats(0).inference_count(), 2u);
  EXPECT_EQ(one.model_stats(0).inference_stats().queue().count(), 1u);
  EXPECT_EQ(one.model_stats(0).batch_stats(0).batch_size(), 1u);
  EXPECT_EQ(call<inference::ModelStatisticsResponse>(&Stub::ModelStatistics, inference::ModelStatisticsRequest())
                .model_stats_size(),
            3);
}

// A connection each, which the library gives to one of the threads by chance.
TEST(GrpcThreadsTest, SeveralAnswer) {
  std::mutex mutex;
  std::set<std::thread::id> threads;  // that read calls; guarded by mutex
  FrontendOptions options;
  options.grpc_threads = 4;
  options.on_unknown_name = [&](const std::string&) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  TestServer server(options);
  grpc::ChannelArguments own_connection;
  own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (int i = 0; i < 40; ++i) {
    const auto stub = inference::GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
        fmt::format("127.0.0.1:{}", server.frontend->grpc_port()), grpc::InsecureChannelCredentials(), own_connection));
    ModelInferRequest request = doubling_request({1, 2});
    (*request.mutable_parameters())[fmt::format("unknown {}", i)].set_bool_param(true);
    grpc::ClientContext context;
    ModelInferResponse response;
    const grpc::Status status = stub->ModelInfer(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.raw_output_contents(0), raw({2, 4}));
  }
  const std::lock_guard lock(mutex);
  EXPECT_GT(threads.size(), 1u);
}

// Has room for one connection.
class GrpcConnectionsTest : public ::testing::Test {
 protected:
  using Socket = boost::asio::ip::tcp::socket;

  void start(const std::function<void(FrontendOptions&)>& change = [](FrontendOptions&) {}) {
    FrontendOptions options;
    options.connections_max = 1;
    change(options);
    server_.emplace(options);
  }
  // A client that has said hello, and was answered.
  Socket greet() {
    Socket client(context_);
    client.connect({boost::asio::ip::address_v4::loopback(), server_->frontend->grpc_port()});
    boost::asio::write(client,
                       boost::asio::buffer(std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33)));
    char byte;
    boost::asio::read(client, boost::asio::buffer(&byte, 1));
    return client;
  }
  // Of a client that tries again and again, for as long as there is hope.
  grpc::Status ask(const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    arguments.SetSslTargetNameOverride("localhost");  // resolving it leaks some bytes
    const auto channel =
        grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", server_->frontend->grpc_port()), credentials, arguments);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(channel)->Check(&context, {}, &response);
  }
  bool answers_another() { return ask().ok(); }

  boost::asio::io_context context_;
  std::optional<TestServer> server_;
};

TEST_F(GrpcConnectionsTest, OneMoreIsRefused) {
  start();
  const Socket first = greet();
  EXPECT_ANY_THROW(greet());
}

TEST_F(GrpcConnectionsTest, AClientThatClosesMakesRoom) {
  start();
  greet();
  EXPECT_TRUE(answers_another());
}

TEST_F(GrpcConnectionsTest, AClientThatResetsMakesRoom) {
  start();
  greet().set_option(boost::asio::socket_base::linger(true, 0));
  EXPECT_TRUE(answers_another());
}

TEST_F(GrpcConnectionsTest, ASilentClientMakesRoom) {
  start();
  Socket client = greet();
  client.shutdown(Socket::shutdown_send);
  EXPECT_TRUE(answers_another());
}

TEST_F(GrpcConnectionsTest, AClientThatIsIdleTooLongMakesRoom) {
  start([](FrontendOptions& options) { options.idle_timeout = Duration::milliseconds(100); });
  const Socket client = greet();
  EXPECT_TRUE(answers_another());
}

TEST_F(GrpcConnectionsTest, ClientsThatSpeakTlsMakeRoom) {
  const TestCertificate identity = make_test_certificate();
  start([&](FrontendOptions& options) { options.tls = TlsIdentity{identity.certificate, identity.private_key, ""}; });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask(grpc::SslCredentials({identity.certificate, "", ""})).ok());
}

}  // namespace
}  // namespace foliot
