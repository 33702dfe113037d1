// The same rules, as both protocols' decoders meet them.
#include "edge/requests/request_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <inference.pb.h>

#include <cmath>

#include "edge/grpc/grpc_request.h"
#include "edge/requests/json_request.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Status read(std::string_view name, const ParameterValue& value) {
  RequestParameters parameters;
  return read_request_parameter(name, value, parameters);
}

std::vector<std::string> names_of(const UnknownNamesOfRequest& unknown) {
  std::vector<std::string> names;
  for (const UnknownName& name : unknown.names()) {
    names.push_back(std::string(to_string(name.place)) + " " + std::string(name.name));
  }
  return names;
}

TEST(RequestParametersTest, SequencesAreRefusedUnlessThereIsNone) {
  using std::string_view_literals::operator""sv;
  EXPECT_TRUE(read("sequence_id", int64_t{0}).ok());
  EXPECT_TRUE(read("sequence_id", uint64_t{0}).ok());
  EXPECT_TRUE(read("sequence_id", ""sv).ok());
  EXPECT_TRUE(read("sequence_start", false).ok());
  EXPECT_TRUE(read("sequence_end", false).ok());
  for (const auto& [name, value] :
       std::vector<std::pair<std::string_view, ParameterValue>>{{"sequence_id", int64_t{7}},
                                                                {"sequence_id", uint64_t{1} << 63},
                                                                {"sequence_id", "abc"sv},
                                                                {"sequence_start", true},
                                                                {"sequence_end", true}}) {
    const Status status = read(name, value);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << name;
    EXPECT_THAT(status.message(), HasSubstr(name));
  }
  EXPECT_THAT(read("sequence_id", "abc"sv).message(), HasSubstr("'abc'"));
  EXPECT_EQ(read("sequence_id", 1.5).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(read("sequence_start", int64_t{1}).code(), StatusCode::kInvalidArgument);
}

TEST(RequestParametersTest, AClassIsOneOfThree) {
  for (const RequestClass known : {RequestClass::kDeadline, RequestClass::kBestEffort, RequestClass::kOffline}) {
    RequestParameters parameters;
    EXPECT_TRUE(read_request_parameter("class", to_string(known), parameters).ok());
    EXPECT_EQ(parameters.request_class, known);
    EXPECT_TRUE(parameters.check().ok());
    parameters.timeout = Duration::milliseconds(5);
    EXPECT_EQ(parameters.check().ok(), known == RequestClass::kDeadline);
  }
  const Status wrong = read("class", std::string_view("urgent"));
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(wrong.message(), HasSubstr("'deadline' (the default), 'best_effort' or 'offline', got 'urgent'"));
  EXPECT_EQ(read("class", int64_t{1}).code(), StatusCode::kInvalidArgument);
}

TEST(RequestParametersTest, RequirementsAreNumbersOrTheirTexts) {
  using std::string_view_literals::operator""sv;
  for (const ParameterValue& value : std::vector<ParameterValue>{0.5, "0.5"sv, "5e-1"sv}) {
    RequestParameters parameters;
    EXPECT_TRUE(read_request_parameter("accuracy", value, parameters).ok());
    EXPECT_TRUE(read_request_parameter("cost", value, parameters).ok());
    EXPECT_EQ(parameters.accuracy, 0.5);
    EXPECT_EQ(parameters.cost, 0.5);
  }
  EXPECT_TRUE(read("accuracy", int64_t{1}).ok());
  EXPECT_TRUE(read("accuracy", uint64_t{0}).ok());
  for (const ParameterValue& value : std::vector<ParameterValue>{1.01, -0.1, NAN, int64_t{2}, "2"sv, "half"sv, "0.5x"sv,
                                                                 ""sv, " 1"sv, true, std::monostate()}) {
    EXPECT_EQ(read("accuracy", value).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(read("accuracy", 1.5).message(), HasSubstr("'accuracy' must be a number from 0 to 1, got 1.5"));
  for (const ParameterValue& value : std::vector<ParameterValue>{0.0, -1.0, INFINITY, "nan"sv, int64_t{0}}) {
    EXPECT_EQ(read("cost", value).code(), StatusCode::kInvalidArgument);
  }
}

TEST(RequestParametersTest, OnlyTheDefaultPriorityIsHonoured) {
  EXPECT_TRUE(read("priority", uint64_t{0}).ok());
  EXPECT_TRUE(read("priority", int64_t{0}).ok());
  EXPECT_EQ(read("priority", uint64_t{1}).code(), StatusCode::kUnimplemented);
  EXPECT_THAT(read("priority", int64_t{2}).message(), HasSubstr("'priority' is 2"));
  EXPECT_EQ(read("priority", int64_t{-1}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(read("priority", std::monostate()).code(), StatusCode::kInvalidArgument);
}

TEST(RequestParametersTest, AContextIsAShortText) {
  RequestParameters parameters;
  EXPECT_TRUE(read_request_parameter("context", std::string_view("north"), parameters).ok());
  EXPECT_EQ(parameters.context, "north");
  const std::string longest(64, 'x');
  EXPECT_TRUE(read("context", std::string_view(longest)).ok());
  EXPECT_THAT(read("context", std::string_view(longest + "x")).message(), HasSubstr("at most 64 bytes"));
  EXPECT_EQ(read("context", int64_t{1}).code(), StatusCode::kInvalidArgument);
}

TEST(RequestParametersTest, ALabelStandsForAVersion) {
  RequestParameters parameters;
  EXPECT_EQ(*parameters.version_or_label("3"), "3");
  EXPECT_TRUE(read_request_parameter("label", std::string_view("stable"), parameters).ok());
  EXPECT_TRUE(read_request_parameter("split_key", std::string_view("a user"), parameters).ok());
  EXPECT_EQ(*parameters.version_or_label(""), "stable");
  EXPECT_EQ(parameters.split_key, "a user");
  EXPECT_THAT(parameters.version_or_label("3").status().message(),
              HasSubstr("names version '3', and its parameter 'label' is 'stable'"));
  EXPECT_THAT(read("label", std::string_view(std::string(65, 'x'))).message(), HasSubstr("at most 64 bytes"));
  EXPECT_THAT(read("split_key", std::string_view(std::string(257, 'x'))).message(), HasSubstr("at most 256 bytes"));
}

TEST(RequestParametersTest, ATimeoutIsAnyWholeNumber) {
  RequestParameters parameters;
  EXPECT_TRUE(read_request_parameter("timeout", uint64_t{2500}, parameters).ok());
  EXPECT_EQ(parameters.timeout, Duration::microseconds(2500));
  EXPECT_TRUE(read_request_parameter("timeout", UINT64_MAX, parameters).ok());
  EXPECT_GT(*parameters.timeout, Duration::seconds(86400));
  EXPECT_TRUE(read_request_parameter("timeout", int64_t{0}, parameters).ok());
  EXPECT_FALSE(parameters.timeout.has_value());
  EXPECT_THAT(read("timeout", int64_t{-1}).message(), HasSubstr("-1"));
  EXPECT_THAT(read("timeout", 0.5).message(), HasSubstr("whole number of microseconds, got 0.5"));
}

TEST(RequestParametersTest, TimeoutsAreMicrosecondsAndZeroIsNone) {
  EXPECT_EQ(parse_timeout(1500).value(), Duration::microseconds(1500));
  EXPECT_EQ(parse_timeout(0).value(), std::nullopt);
  EXPECT_FALSE(parse_timeout(-1).ok());
  const auto longest = parse_timeout(std::numeric_limits<int64_t>::max());
  EXPECT_GT(*longest.value(), Duration::seconds(3600));
}

TEST(RequestParametersTest, HostileValuesAreCut) {
  EXPECT_LT(read("priority", std::string_view(std::string(100'000, 'x'))).message().size(), 200u);
}

TEST(RequestParametersTest, TensorsInSharedMemoryAndClassificationAreRefused) {
  UnknownNamesOfRequest unknown;
  for (const char* name : {"shared_memory_region", "shared_memory_offset", "shared_memory_byte_size"}) {
    EXPECT_EQ(read_input_parameter("x", name, unknown).code(), StatusCode::kUnimplemented) << name;
    EXPECT_EQ(read_output_parameter("y", name, {}, unknown).code(), StatusCode::kUnimplemented) << name;
  }
  EXPECT_TRUE(read_output_parameter("y", "classification", int64_t{0}, unknown).ok());
  EXPECT_THAT(read_output_parameter("y", "classification", uint64_t{3}, unknown).message(), HasSubstr("'y'"));
  EXPECT_EQ(read_output_parameter("y", "classification", true, unknown).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(names_of(unknown), IsEmpty());
  EXPECT_TRUE(read_input_parameter("x", "colour", unknown).ok());
  EXPECT_TRUE(read_output_parameter("y", "taste", {}, unknown).ok());
  EXPECT_THAT(names_of(unknown), ElementsAre("input parameter colour", "output parameter taste"));
}

TEST(RequestParametersTest, ALoadMayNameAVersion) {
  UnknownNamesOfRequest unknown;
  VersionRequest request;
  const auto read = [&](std::string_view name, const ParameterValue& value) {
    return read_repository_parameter(name, value, &request, unknown);
  };
  EXPECT_TRUE(read("version", int64_t{12}).ok());
  EXPECT_EQ(request.version, "12");
  EXPECT_TRUE(read("version", std::string_view("3")).ok());
  EXPECT_EQ(request.version, "3");
  EXPECT_TRUE(read("compare", false).ok());
  EXPECT_TRUE(read("take", false).ok());
  EXPECT_TRUE(read("roll_back", true).ok());
  EXPECT_FALSE(request.compare || request.take);
  EXPECT_TRUE(request.roll_back);
  EXPECT_THAT(read("version", int64_t{-1}).message(), HasSubstr("must be the number of a version"));
  EXPECT_THAT(read("version", std::string_view()).message(), HasSubstr("must be the number of a version"));
  EXPECT_THAT(read("roll_back", int64_t{1}).message(), HasSubstr("'roll_back' must be true or false"));
  EXPECT_TRUE(unknown.names().empty());
  EXPECT_TRUE(read("rollback", true).ok()) << "for what is loaded to say";
  EXPECT_EQ(request.unknown, "rollback");
  EXPECT_THAT(names_of(unknown), ElementsAre("repository parameter rollback"));
}

TEST(RequestParametersTest, AModelIsLoadedFromTheRepositoryOnly) {
  UnknownNamesOfRequest unknown;
  const auto read = [&unknown](std::string_view name) {
    return read_repository_parameter(name, true, nullptr, unknown);
  };
  EXPECT_TRUE(read("unload_dependents").ok());
  EXPECT_EQ(read("config").code(), StatusCode::kUnimplemented);
  EXPECT_EQ(read("file:1/model.onnx").code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(read("colour").ok());
  EXPECT_TRUE(read("version").ok());
  EXPECT_THAT(names_of(unknown), ElementsAre("repository parameter colour", "repository parameter version"));
}

TEST(RequestParametersTest, OneRequestHasNoMoreNamesThanItMay) {
  RequestParameters parameters;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(read_request_parameter("x", true, parameters).ok());
  EXPECT_EQ(parameters.unknown.names().size(), UnknownNamesOfRequest::kMax);
}

TEST(RequestParametersTest, HttpShowsEveryNameThatIsUnknown) {
  std::string body = R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT8","data":[1],"size":1,
      "parameters":{"colour":[1]}}],"outputs":[{"name":"y","kind":2,"parameters":{"binary_data":true,"taste":{}}}],
      "parameters":{"binary_data_output":true,"triton_enable_empty_final_response":true,"urgency":1},"modelname":"m"})";
  JsonRequestDecoder decoder;
  const auto request = decoder.decode(body, {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_THAT(names_of(request->parameters.unknown),
              ElementsAre("request parameter urgency", "request member modelname", "input member size",
                          "input parameter colour", "output member kind", "output parameter taste"));
}

TEST(RequestParametersTest, GrpcShowsEveryNameThatIsUnknown) {
  inference::ModelInferRequest message;
  auto& parameters = *message.mutable_parameters();
  parameters["urgency"].set_double_param(1);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  parameters["sequence_id"].set_string_param("");
  auto* input = message.add_inputs();
  input->set_name("x");
  input->set_datatype("INT8");
  input->add_shape(1);
  input->mutable_contents()->add_int_contents(1);
  (*input->mutable_parameters())["binary_data_size"].set_int64_param(1);
  auto* output = message.add_outputs();
  output->set_name("y");
  (*output->mutable_parameters())["taste"].set_string_param("sweet");
  const auto request = decode_grpc_request(message);
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_TRUE(request->marks_final_response);
  EXPECT_THAT(names_of(request->parameters.unknown),
              ElementsAre("request parameter urgency", "input parameter binary_data_size", "output parameter taste"));

  (*output->mutable_parameters())["classification"].set_uint64_param(2);
  EXPECT_EQ(decode_grpc_request(message).status().code(), StatusCode::kUnimplemented);
  output->mutable_parameters()->clear();
  parameters["sequence_start"].set_bool_param(true);
  EXPECT_EQ(decode_grpc_request(message).status().code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace foliot
