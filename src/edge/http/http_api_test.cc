// The real server on a loopback port, driven by Beast's client.
#include "edge/http/http_api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>

#include "edge/frontend/test_server.h"
#include "edge/http/http_server.h"
#include "edge/http/test_client.h"
#include "edge/requests/inflate.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kDoubling =
    R"({"id":"42","inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4.25]]}]})";

class HttpApiTest : public ::testing::Test {
 protected:
  static FrontendOptions options() {
    FrontendOptions options;
    options.body_bytes_max = 1 << 20;
    options.header_bytes_max = 4096;
    options.requests_in_flight_max = 8;
    options.connections_max = 16;
    return options;
  }
  static constexpr const char* kInfer = "/v2/models/doubling/infer";
  uint16_t port() const { return server_.frontend->http_port(); }

  TestServer server_{options()};
  FakeController& controller_ = server_.controller;
  Client client_{server_.frontend->http_port()};
};

// ---- Feedback

TEST_F(HttpApiTest, FeedbackGoesToWhatLearns) {
  EXPECT_EQ(client_.ask("GET", "/v2/applications/doubling/feedback").status, 405u);
  EXPECT_EQ(client_.ask("POST", "/v2/applications/doubling/more", "{}").status, 404u);
  EXPECT_EQ(client_.ask("POST", "/v2/applications/doubling/feedback", "{}").status, 400u);
  const char* feedback = R"({"feedback_id":"x","label":1})";
  EXPECT_EQ(client_.ask("POST", "/v2/applications/nothing/feedback", feedback).status, 404u);
  const Reply reply = client_.ask("POST", "/v2/applications/doubling/feedback", feedback);
  EXPECT_EQ(reply.status, 501u) << "models do not learn";
  EXPECT_THAT(reply.body, HasSubstr("doubling"));
}

// ---- Personal models

TEST_F(HttpApiTest, ServesPersonalModels) {
  const Reply predicted =
      client_.ask("POST", "/v2/personal/movies/predict", R"({"user":7,"items":[3,4],"parameters":{"timeout":2000}})");
  EXPECT_EQ(predicted.body, R"({"model_name":"movies","model_version":"3","predictions":[10,11]})");
  EXPECT_EQ(server_.personal.seen().timeout, Duration::milliseconds(2));
  EXPECT_EQ(client_.ask("POST", "/v2/personal/movies/topk", R"({"user":7,"k":2,"items":[5,6]})").body,
            R"({"model_name":"movies","model_version":"3","results":[{"query":77,"items":[{"item":2,"score":2},)"
            R"({"item":1,"score":1,"drawn":true,"probability":0.25}]}]})");
  EXPECT_THAT(server_.personal.seen().last_query.items, ::testing::ElementsAre(5u, 6u));
  EXPECT_EQ(client_.ask("POST", "/v2/personal/movies/observe", R"({"user":7,"item":3,"value":4.5,"id":1})").status,
            200u);
  ASSERT_EQ(server_.personal.seen().observations.size(), 1u);
  EXPECT_EQ(server_.personal.seen().observations[0].value, 4.5);
  EXPECT_EQ(client_.ask("POST", "/v2/personal/movies/forget", R"({"users":[7,8]})").status, 200u);
  EXPECT_THAT(server_.personal.seen().forgotten, ::testing::ElementsAre(7u, 8u));
}

TEST_F(HttpApiTest, RefusesWhatNoPersonalModelTakes) {
  EXPECT_EQ(client_.ask("GET", "/v2/personal/movies/predict").status, 405u);
  EXPECT_EQ(client_.ask("POST", "/v2/personal/movies/guess", "{}").status, 404u);
  EXPECT_EQ(client_.ask("POST", "/v2/personal/movies", "{}").status, 404u);
  EXPECT_EQ(client_.ask("POST", "/v2/personal/movies/predict", "{}").status, 400u);
  const Reply reply = client_.ask("POST", "/v2/personal/books/predict", R"({"user":7,"item":3})");
  EXPECT_EQ(reply.status, 404u);
  EXPECT_THAT(reply.body, HasSubstr("unknown personal model 'books'"));
}

// ---- Tables

TEST_F(HttpApiTest, PredictsAsKServesProtocolV1Does) {
  EXPECT_EQ(client_.ask("GET", "/v1/models").body, R"({"models":["doubling","sequence","whole"]})");
  EXPECT_EQ(client_.ask("GET", "/v1/models/doubling").body, R"({"name":"doubling","ready":true})");
  EXPECT_EQ(client_.ask("GET", "/v1/models/nope").status, 404u);
  const std::string predict = "/v1/models/doubling:predict";
  EXPECT_EQ(client_.ask("POST", predict, R"({"instances":[[1,2],[3,4.25]]})").body,
            R"({"predictions":[[2,4],[6,8.5]]})");
  EXPECT_EQ(client_.ask("POST", predict, R"({"instances":[{"x":[1,NaN]}]})").body, R"({"predictions":[[2,null]]})");
  EXPECT_EQ(client_.ask("POST", "/v1/models/sequence:predict", R"({"instances":[[1,2],[3,4]]})").body,
            R"({"predictions":[{"pairs":[[1,4],[2,4]],"sum":[3]},{"pairs":[[3,4],[4,4]],"sum":[7]}]})");
  EXPECT_EQ(client_.ask("POST", "/v1/models/whole:predict", R"({"instances":[[[true,false],[false,true]]]})").body,
            R"({"predictions":[[[false,true],[true,false]]]})");
  EXPECT_EQ(client_.ask("POST", "/v1/models/nope:predict", R"({"instances":[[1,2]]})").status, 404u);
  EXPECT_EQ(client_.ask("GET", predict).status, 405u);
  EXPECT_EQ(client_.ask("POST", "/v1/models/doubling:explain", "{}").status, 405u);
  const Reply wrong = client_.ask("POST", predict, R"({"instances":[[1,2],[3,null]]})");
  EXPECT_EQ(wrong.status, 400u);
  EXPECT_THAT(wrong.parsed()["error"], HasSubstr("instances[1] has null"));
  const Reply late = client_.ask("POST", predict, R"({"instances":[[1,2]],"parameters":{"timeout":-1}})");
  EXPECT_EQ(late.status, 400u);
}

TEST_F(HttpApiTest, LongTablesAreDecodedAside) {
  std::string rows;
  for (int i = 0; i < 20'000; ++i) rows += "[1,2],";
  // More rows than a model may have at once: the message has their number, so they were read.
  const Reply reply = client_.ask("POST", "/v1/models/doubling:predict", "{\"instances\":[" + rows + "[1,2]]}");
  EXPECT_EQ(reply.status, 400u);
  EXPECT_THAT(reply.body, HasSubstr("20001"));
  EXPECT_EQ(client_.ask("POST", "/v1/models/nope:predict", "{\"instances\":[" + rows + "[1,2]]}").status, 404u);
}

TEST_F(HttpApiTest, InvocationsNeedTheOnlyModel) {
  const char* json = "Content-Type: application/json\r\n";
  const Reply several = client_.ask("POST", "/invocations", R"({"inputs":[[1,2]]})", json);
  EXPECT_EQ(several.status, 400u);
  EXPECT_THAT(several.body, HasSubstr("3 models are served"));
  EXPECT_THAT(several.body, HasSubstr("/v1/models/doubling:predict"));
  server_.catalog.remove("sequence");
  server_.catalog.remove("whole");
  EXPECT_EQ(client_.ask("POST", "/invocations", R"({"dataframe_split":{"data":[[1,NaN]]}})", json).body,
            R"({"predictions":[[2,NaN]]})");
  EXPECT_EQ(client_.ask("POST", "/invocations", "1,2", "Content-Type: text/csv\r\n").status, 415u);
  EXPECT_EQ(client_.ask("GET", "/ping").status, 200u);
  EXPECT_EQ(client_.ask("GET", "/health").status, 200u);
  EXPECT_EQ(client_.ask("GET", "/version").header("Content-Type"), "text/plain");
}

// ---- What the server says of itself

TEST_F(HttpApiTest, DescribesItself) {
  const nlohmann::json about = client_.ask("GET", "/v2").parsed();
  EXPECT_EQ(about["name"], "foliot");
  EXPECT_THAT(about["extensions"], ::testing::Contains("statistics"));
  EXPECT_EQ(client_.ask("GET", "/v2/health/live").status, 200u);
  EXPECT_EQ(client_.ask("GET", "/v2/health/ready").status, 200u);
}

TEST_F(HttpApiTest, TakesWholeUrls) {
  EXPECT_EQ(client_.ask("GET", "http://any.host:8000/v2/health/live").status, 200u);
  EXPECT_EQ(client_.ask("GET", "http://any.host/v2").parsed()["name"], "foliot");
  EXPECT_EQ(client_.ask("GET", "http://any.host").parsed()["status"], "alive");
  EXPECT_EQ(client_.ask("POST", "http://any.host" + std::string(kInfer), kDoubling).status, 200u);
}

TEST_F(HttpApiTest, AnswersHeadWithoutABody) {
  for (const char* path : {"/v2/health/live", "/v2/health/ready", "/v2", "/v2/models/doubling", "/v2/models/nope"}) {
    client_.send(fmt::format("HEAD {} HTTP/1.1\r\nHost: t\r\n\r\nGET /v2 HTTP/1.1\r\nHost: t\r\n\r\n", path));
    EXPECT_EQ(client_.read(false).status, std::string_view(path).ends_with("nope") ? 404u : 200u) << path;
    // Nothing stands before the next answer.
    EXPECT_EQ(client_.read().parsed()["name"], "foliot");
  }
}

TEST_F(HttpApiTest, ShowsItsSettingsAndKeepsThem) {
  const nlohmann::json log = client_.ask("GET", "/v2/logging").parsed();
  EXPECT_EQ(log["log_info"], true);
  EXPECT_EQ(log["log_verbose_level"], 0);
  EXPECT_EQ(client_.ask("POST", "/v2/logging", R"({"log_info":true,"log_format":"default"})").parsed(), log);
  const Reply change = client_.ask("POST", "/v2/logging", R"({"log_verbose_level":1})");
  EXPECT_EQ(change.status, 501u);
  EXPECT_THAT(change.body, HasSubstr("cannot be changed to 1"));
  EXPECT_EQ(client_.ask("POST", "/v2/logging", R"({"log_colour":1})").status, 400u);
  EXPECT_EQ(client_.ask("POST", "/v2/logging", "[]").status, 400u);

  const nlohmann::json trace = client_.ask("GET", "/v2/trace/setting").parsed();
  EXPECT_EQ(trace["trace_level"], nlohmann::json({"OFF"}));
  EXPECT_EQ(trace["trace_rate"], "1000");
  for (const char* path : {"/v2/models/doubling/trace/setting", "/v2/models/doubling/versions/1/trace/setting"}) {
    EXPECT_EQ(client_.ask("GET", path).parsed(), trace);
    EXPECT_EQ(client_.ask("POST", path, R"({"trace_level":["OFF"],"trace_rate":null,"trace_count":"-1"})").status,
              200u);
    EXPECT_EQ(client_.ask("POST", path, R"({"trace_level":["TIMESTAMPS"]})").status, 501u);
    EXPECT_EQ(client_.ask("POST", path, R"({"trace_leve":["OFF"]})").status, 400u);
    EXPECT_EQ(client_.ask("PUT", path).status, 405u);
  }
  EXPECT_EQ(client_.ask("GET", "/v2/models/nope/trace/setting").status, 404u);
  EXPECT_EQ(client_.ask("GET", "/v2/models/doubling/infer/trace/setting").status, 404u);
}

TEST_F(HttpApiTest, DescribesModels) {
  const nlohmann::json metadata = client_.ask("GET", "/v2/models/sequence/versions/1").parsed();
  EXPECT_EQ(metadata["versions"], nlohmann::json({"1"}));
  EXPECT_EQ(metadata["inputs"][0], nlohmann::json({{"name", "tokens"}, {"datatype", "INT64"}, {"shape", {-1, -1}}}));
  const nlohmann::json config = client_.ask("GET", "/v2/models/doubling/config").parsed();
  EXPECT_EQ(config["max_batch_size"], 4);
  EXPECT_EQ(config["parameters"]["labels.y"]["string_value"], R"(["cat","a \"dog\""])");
  EXPECT_EQ(config["input"][0], nlohmann::json({{"name", "x"},
                                                {"data_type", "TYPE_FP32"},
                                                {"format", "FORMAT_NONE"},
                                                {"dims", {2}},
                                                {"is_shape_tensor", false},
                                                {"allow_ragged_batch", false},
                                                {"optional", false},
                                                {"is_non_linear_format_io", false}}));
  EXPECT_EQ(config["output"][0]["label_filename"], "");
  for (const char* field :
       {"runtime", "version_policy", "batch_input", "batch_output", "optimization", "instance_group",
        "default_model_filename", "cc_model_filenames", "metric_tags", "model_warmup", "dynamic_batching"}) {
    EXPECT_TRUE(config.contains(field)) << field;
  }
  EXPECT_EQ(client_.ask("GET", "/v2/models/whole/config").parsed()["max_batch_size"], 0);
  EXPECT_EQ(client_.ask("GET", "/v2/models/doubling/ready").status, 200u);
}

TEST_F(HttpApiTest, DescribesPipelinesWithTheirStages) {
  const std::shared_ptr<const ModelInfo> model = server_.catalog.find("doubling")->info;
  ModelInfo pipeline = *model;
  pipeline.name = "twice";
  pipeline.pipeline = std::make_shared<const PipelineInfo>(
      PipelineInfo{.stages = {{.name = "first", .model = model}, {.name = "second", .model = model}}});
  CatalogEntry entry = *server_.catalog.find("doubling");
  entry.name = "twice";
  entry.role = EntryRole::kPipeline;
  entry.info = std::make_shared<const ModelInfo>(pipeline);
  server_.catalog.put(entry);
  const nlohmann::json config = client_.ask("GET", "/v2/models/twice/config").parsed();
  EXPECT_EQ(nlohmann::json::parse(config["parameters"]["stages"]["string_value"].get<std::string>()),
            nlohmann::json::parse(R"([{"name": "first", "model": "doubling", "version": "1"},
                                      {"name": "second", "model": "doubling", "version": "1"}])"));
  EXPECT_EQ(config["max_batch_size"], 4);
  EXPECT_FALSE(client_.ask("GET", "/v2/models/doubling/config").parsed()["parameters"].contains("stages"));
}

TEST_F(HttpApiTest, ModelsThatAreNotReadySaySo) {
  CatalogEntry entry;
  entry.name = "slow one";
  entry.version = "1";
  entry.state = ModelState::kLoading;
  server_.catalog.put(entry);
  EXPECT_EQ(client_.ask("GET", "/v2/health/ready").status, 200u);
  EXPECT_EQ(client_.ask("GET", "/v2/health/ready").body, R"({"ready":true})");
  EXPECT_EQ(client_.ask("GET", "/v2/health/live").body, R"({"live":true})");
  EXPECT_EQ(client_.ask("GET", "/v2/models/doubling/ready").body, R"({"name":"doubling","ready":true})");
  EXPECT_EQ(client_.ask("GET", "/v2/models/slow%20one/ready").status, 503u);
  EXPECT_EQ(client_.ask("GET", "/v2/models/slow%20one/ready").body, R"({"name":"slow one","ready":false})");
  const Reply reply = client_.ask("POST", "/v2/models/slow%20one/infer", kDoubling);
  EXPECT_EQ(reply.status, 503u);
  EXPECT_THAT(reply.body, HasSubstr("LOADING"));
  EXPECT_EQ(reply.header("Retry-After"), "1");
}

TEST_F(HttpApiTest, ListsLoadsAndUnloadsModels) {
  const nlohmann::json index = client_.ask("POST", "/v2/repository/index", "{}").parsed();
  ASSERT_EQ(index.size(), 3u);
  EXPECT_EQ(index[0], nlohmann::json({{"name", "doubling"}, {"version", "1"}, {"state", "READY"}, {"reason", ""}}));
  EXPECT_EQ(client_.ask("POST", "/v2/repository/models/doubling/load").status, 200u);
  EXPECT_EQ(client_.ask("POST", "/v2/repository/models/doubling/unload").status, 200u);
  const Reply absent = client_.ask("POST", "/v2/repository/models/absent/load");
  EXPECT_EQ(absent.status, 404u);
  EXPECT_THAT(absent.body, HasSubstr("no model 'absent'"));
}

TEST_F(HttpApiTest, IndexShowsOnlyReadyModelsWhenAsked) {
  CatalogEntry entry;
  entry.name = "broken";
  entry.reason = "node 'a' has no shape";
  server_.catalog.put(entry);
  EXPECT_THAT(client_.ask("POST", "/v2/repository/index").body, HasSubstr("node 'a' has no shape"));
  EXPECT_EQ(client_.ask("POST", "/v2/repository/index", R"({"ready":true})").parsed().size(), 3u);
}

TEST_F(HttpApiTest, SharedMemoryIsNeverThere) {
  for (const char* kind : {"system", "cuda"}) {
    const std::string base = fmt::format("/v2/{}sharedmemory", kind);
    EXPECT_EQ(client_.ask("GET", base + "/status").body, "[]");
    EXPECT_EQ(client_.ask("POST", base + "/unregister").status, 200u);
    EXPECT_EQ(client_.ask("POST", base + "/region/r/unregister").status, 200u);
    EXPECT_EQ(client_.ask("POST", base + "/region/r/register", "{}").status, 501u);
    EXPECT_EQ(client_.ask("GET", base + "/region/r/status").status, 404u);
  }
}

TEST_F(HttpApiTest, UnknownPathsAndWrongMethods) {
  for (const char* path :
       {"/v1", "/v1/models/a/b", "/v2/health", "/v2/models/doubling/what", "/v2/models/doubling/infer/more"})
    EXPECT_EQ(client_.ask("GET", path).status, 404u) << path;
  const Reply got = client_.ask("GET", kInfer);
  EXPECT_EQ(got.status, 405u);
  EXPECT_EQ(got.header("Allow"), "POST");
  EXPECT_EQ(client_.ask("POST", "/v2").header("Allow"), "GET");
}

// ---- Inference

TEST_F(HttpApiTest, InfersFromJson) {
  const Reply reply = client_.ask("POST", kInfer, kDoubling);
  ASSERT_EQ(reply.status, 200u) << reply.body;
  EXPECT_EQ(reply.body, R"({"id":"42","model_name":"doubling","model_version":"1",)"
                        R"("parameters":{"foliot_request":"4294967297"},)"
                        R"("outputs":[{"name":"y","datatype":"FP32","shape":[2,2],"data":[2,4,6,8.5]}]})");
}

TEST_F(HttpApiTest, RowsBecomeRequestsAndShareADeadline) {
  const Reply reply = client_.ask("POST", kInfer,
                                  R"({"parameters":{"timeout":5000000},)"
                                  R"("inputs":[{"name":"x","shape":[3,2],"datatype":"FP32","data":[1,2,3,4,5,6]}]})");
  ASSERT_EQ(reply.status, 200u) << reply.body;
  const std::vector<Request> requests = controller_.submitted();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_NE(requests[0].id, requests[1].id);
  EXPECT_EQ(requests[2].answer_by(), requests[2].arrival + Duration::seconds(5));
  EXPECT_LT(requests[2].deadline, requests[2].answer_by()) << "the answer has to get here";
  EXPECT_EQ(reply.parsed()["outputs"][0]["data"], nlohmann::json({2, 4, 6, 8, 10, 12}));
}

TEST_F(HttpApiTest, InfersFromAndToBinaryData) {
  const std::string text = R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32",)"
                           R"("parameters":{"binary_data_size":8}}],"parameters":{"binary_data_output":true}})";
  const float numbers[2] = {1.5f, -2};
  const std::string body = text + std::string(reinterpret_cast<const char*>(numbers), sizeof numbers);
  const Reply reply =
      client_.ask("POST", kInfer, body, fmt::format("Inference-Header-Content-Length: {}\r\n", text.size()));
  ASSERT_EQ(reply.status, 200u) << reply.body;
  const size_t json_bytes = std::stoul(reply.header("Inference-Header-Content-Length"));
  const nlohmann::json about = nlohmann::json::parse(reply.body.substr(0, json_bytes));
  EXPECT_EQ(about["outputs"][0]["parameters"]["binary_data_size"], 8);
  float doubled[2];
  ASSERT_EQ(reply.body.size(), json_bytes + sizeof doubled);
  std::memcpy(doubled, reply.body.data() + json_bytes, sizeof doubled);
  EXPECT_EQ(doubled[0], 3);
  EXPECT_EQ(doubled[1], -4);
}

TEST_F(HttpApiTest, MixesBinaryAndJsonOutputs) {
  const Reply reply =
      client_.ask("POST", "/v2/models/sequence/infer",
                  R"({"inputs":[{"name":"tokens","shape":[1,5],"datatype":"INT64","data":[1,2,3,4,5]}],)"
                  R"("outputs":[{"name":"sum"},{"name":"pairs","parameters":{"binary_data":true}}]})");
  ASSERT_EQ(reply.status, 200u) << reply.body;
  const size_t json_bytes = std::stoul(reply.header("Inference-Header-Content-Length"));
  const nlohmann::json outputs = nlohmann::json::parse(reply.body.substr(0, json_bytes))["outputs"];
  EXPECT_EQ(outputs[0], nlohmann::json({{"name", "sum"}, {"datatype", "INT64"}, {"shape", {1, 1}}, {"data", {15}}}));
  EXPECT_EQ(outputs[1]["shape"], nlohmann::json({1, 5, 2}));
  int64_t pairs[10];
  ASSERT_EQ(reply.body.size() - json_bytes, sizeof pairs);
  std::memcpy(pairs, reply.body.data() + json_bytes, sizeof pairs);
  EXPECT_EQ(pairs[8], 5);
  EXPECT_EQ(pairs[9], 8);  // the bucket's length
}

TEST_F(HttpApiTest, KeepsAConnectionForManyRequestsEvenPipelinedOnes) {
  std::string many;
  for (int i = 1; i <= 20; ++i)
    many += Client::request(
        "POST", kInfer,
        fmt::format(R"({{"inputs":[{{"name":"x","shape":[1,2],"datatype":"FP32","data":[{},0]}}]}})", i), "");
  client_.send(many);
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(client_.read().parsed()["outputs"][0]["data"][0], 2 * i);
}

TEST_F(HttpApiTest, ReadsCompressedBodies) {
  const std::string text = kDoubling;
  std::string compressed(compressBound(text.size()), '\0');
  uLongf size = compressed.size();
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(compressed.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                       text.size()),
            Z_OK);
  compressed.resize(size);
  EXPECT_EQ(client_.ask("POST", kInfer, compressed, "Content-Encoding: deflate\r\n").status, 200u);
  EXPECT_EQ(client_.ask("POST", kInfer, "junk", "Content-Encoding: gzip\r\n").status, 400u);
  EXPECT_EQ(client_.ask("POST", kInfer, "junk", "Content-Encoding: br\r\n").status, 415u);

  const std::string bomb(2 << 20, ' ');
  compressed.resize(compressBound(bomb.size()));
  size = compressed.size();
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(compressed.data()), &size, reinterpret_cast<const Bytef*>(bomb.data()),
                       bomb.size()),
            Z_OK);
  compressed.resize(size);
  EXPECT_EQ(client_.ask("POST", kInfer, compressed, "Content-Encoding: deflate\r\n").status, 413u);
}

TEST_F(HttpApiTest, AnswersExpectContinue) {
  const std::string body = kDoubling;
  client_.send(fmt::format("POST {} HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n", kInfer,
                           body.size()));
  EXPECT_EQ(client_.read().status, 100u);
  client_.send(body);
  EXPECT_EQ(client_.read().status, 200u);
}

// ---- What may be wrong

TEST_F(HttpApiTest, ALargeBodyForAModelThatCannotAnswerIsNotRead) {
  server_.catalog.put({"new", "1", ModelState::kLoading, {}, nullptr});
  for (const auto& [model, status] : {std::pair("new", 503u), std::pair("absent", 404u)}) {
    Client client(port());
    // Of the body nothing is ever sent.
    client.send(fmt::format("POST /v2/models/{}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n", model));
    const Reply reply = client.read();
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(reply.body, HasSubstr(model));
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_TRUE(client.ended());
  }
  Client asking(port());
  asking.send("POST /v2/models/new/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(asking.read().status, 503u);
  // What is small is read, and the connection kept.
  Client small(port());
  EXPECT_EQ(small.ask("POST", "/v2/models/new/infer", kDoubling).status, 503u);
  EXPECT_EQ(small.ask("POST", "/v2/models/doubling/infer", kDoubling).status, 200u);
}

TEST_F(HttpApiTest, WhatIsNotUnderstoodIsRefusedOrNamed) {
  Client client(port());
  const auto infer = [&](const std::string& parameters) {
    std::string body = kDoubling;
    body.insert(1, fmt::format("\"parameters\":{{{}}},", parameters));
    return client.ask("POST", "/v2/models/doubling/infer", body);
  };
  EXPECT_EQ(infer(R"("sequence_id":7)").status, 501u);
  EXPECT_EQ(infer(R"("sequence_start":true)").status, 501u);
  EXPECT_EQ(infer(R"("priority":1)").status, 501u);
  EXPECT_EQ(infer(R"("priority":"high")").status, 400u);
  EXPECT_EQ(infer(R"("priority":0,"sequence_id":0,"urgency":3)").status, 200u);
  EXPECT_EQ(infer(R"("urgency":3)").status, 200u);
  const std::string metrics = Client(server_.frontend->metrics_port()).ask("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("foliot_unknown_names_total{name=\"urgency\",place=\"request parameter\"} 2"));

  const std::string load = "/v2/repository/models/doubling/load";
  EXPECT_EQ(client.ask("POST", load, R"({"parameters":{"config":"{}"}})").status, 501u);
  EXPECT_EQ(client.ask("POST", load, R"({"parameters":3})").status, 400u);
  EXPECT_EQ(client.ask("POST", load, "{").status, 400u);
  EXPECT_EQ(client.ask("POST", load, R"({"parameters":{"unload_dependents":false}})").status, 200u);
}

TEST_F(HttpApiTest, VersionsOfPersonalModelsAreListedAndLoaded) {
  const std::string movies = "/v2/repository/models/movies/";
  const nlohmann::json list = client_.ask("GET", movies + "versions").parsed();
  EXPECT_EQ(list["served"], "2");
  EXPECT_EQ(list["before"], "1");
  EXPECT_EQ(list["chosen"], true);
  const char* const states[] = {"before", "served", "kept_aside", "idle"};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(list["versions"][i]["state"], states[i]);
  EXPECT_EQ(list["versions"][2]["reason"], "worse");
  EXPECT_EQ(list["versions"][2]["comparison"],
            nlohmann::json::parse(R"({"with":"2","observations":90,"users":40,"loss":1.5,"loss_with":1.25})"));
  EXPECT_FALSE(list["versions"][3].contains("comparison"));
  EXPECT_EQ(client_.ask("POST", movies + "versions").status, 405u);
  EXPECT_EQ(client_.ask("GET", movies + "version").status, 404u);
  const auto error = [&](const std::string& model, const std::string& parameters) {
    const Reply reply = client_.ask("POST", "/v2/repository/models/" + model + "/load",
                                    fmt::format(R"({{"parameters":{}}})", parameters));
    EXPECT_EQ(reply.status, 400u) << reply.body;
    return reply.parsed()["error"].get<std::string>();
  };
  EXPECT_EQ(error("movies", R"({"version":7,"compare":false})"),
            "version '7', compare false, take true, roll_back false, unknown ''");
  EXPECT_EQ(error("movies", R"({"version":"7","take":false})"),
            "version '7', compare true, take false, roll_back false, unknown ''");
  EXPECT_EQ(error("movies", R"({"roll_back":true,"colour":1})"),
            "version '', compare true, take true, roll_back true, unknown 'colour'");
  EXPECT_THAT(error("movies", R"({"version":[7]})"), HasSubstr("must be the number of a version"));
  EXPECT_THAT(error("movies", R"({"take":"no"})"), HasSubstr("'take' must be true or false"));
  EXPECT_THAT(error("doubling", R"({"version":1})"), HasSubstr("'doubling' is no personal model"));
  EXPECT_EQ(client_.ask("GET", "/v2/repository/models/doubling/versions").status, 400u);
}

TEST_F(HttpApiTest, BadInputIsNamed) {
  const auto error_of = [&](const std::string& target, const std::string& body, unsigned status) {
    const Reply reply = client_.ask("POST", target, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return reply.parsed()["error"].get<std::string>();
  };
  EXPECT_THAT(error_of(kInfer, "{", 400), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("/v2/models/nope/infer", kDoubling, 404), HasSubstr("unknown model 'nope'"));
  EXPECT_THAT(error_of("/v2/models/doubling/versions/7/infer", kDoubling, 404), HasSubstr("no version '7'"));
  EXPECT_THAT(error_of("/v2/models/sequence/infer", kDoubling, 400), HasSubstr("unknown input 'x'"));
  EXPECT_THAT(error_of(kInfer, R"({"inputs":[{"name":"x","shape":[0,2],"datatype":"FP32","data":[]}]})", 400),
              HasSubstr("rows in one call"));
  EXPECT_THAT(error_of(kInfer, R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1]}]})", 400),
              AllOf(HasSubstr("expected 8 bytes"), HasSubstr("got 4")));
  EXPECT_THAT(error_of(kInfer, R"({"inputs":[],"parameters":{"timeout":"soon"}})", 400), HasSubstr("'timeout'"));
  EXPECT_EQ(client_.ask("POST", kInfer, "{}", "Inference-Header-Content-Length: 99\r\n").status, 400u);
  EXPECT_TRUE(controller_.submitted().empty());
}

TEST_F(HttpApiTest, NumbersThatAreNotFiniteAreWrittenAsTritonDoes) {
  const Reply reply =
      client_.ask("POST", kInfer, R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[3e38,NaN]}]})");
  EXPECT_EQ(reply.status, 200u);
  EXPECT_THAT(reply.body, HasSubstr("[Infinity,NaN]"));
}

TEST_F(HttpApiTest, LimitsBodyAndHeader) {
  Client large(server_.frontend->http_port());
  large.send(fmt::format("POST {} HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", kInfer, 2 << 20));
  const Reply too_large = large.read();
  EXPECT_EQ(too_large.status, 413u);
  EXPECT_THAT(too_large.body, HasSubstr("1048576"));
  EXPECT_TRUE(large.ended());

  Client chunked(server_.frontend->http_port());
  chunked.send(fmt::format("POST {} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n", kInfer));
  chunked.send(std::string(0x200000, ' '));
  EXPECT_EQ(chunked.read().status, 413u);

  Client wordy(server_.frontend->http_port());
  wordy.send("GET /v2 HTTP/1.1\r\nX: " + std::string(8000, 'x') + "\r\n\r\n");
  EXPECT_EQ(wordy.read().status, 431u);

  Client stranger(server_.frontend->http_port());
  stranger.send("\x16\x03\x01 hello\r\n\r\n");
  EXPECT_EQ(stranger.read().status, 400u);
}

TEST_F(HttpApiTest, LimitsConnections) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 15; ++i) {
    clients.push_back(std::make_unique<Client>(server_.frontend->http_port()));
    EXPECT_EQ(clients.back()->ask("GET", "/v2").status, 200u);
  }
  EXPECT_EQ(client_.ask("GET", "/v2").status, 200u);
  Client one_too_many(server_.frontend->http_port());
  EXPECT_EQ(one_too_many.read().status, 503u);
  EXPECT_TRUE(one_too_many.ended());
}

TEST(HttpServerTest, ClosesConnectionsThatStaySilent) {
  FrontendOptions options;
  options.idle_timeout = Duration::milliseconds(1);
  TestServer server(options);
  Client silent(server.frontend->http_port());
  EXPECT_TRUE(silent.ended());
}

TEST(HttpServerTest, GivesUpRequestsThatDoNotComeWhole) {
  FrontendOptions options;
  options.request_timeout = Duration::milliseconds(1);
  TestServer server(options);
  const std::string head = "POST /v2/models/doubling/infer HTTP/1.1\r\nHost: x\r\n";
  for (const std::string& part : {std::string("P"), head, head + "Content-Length: 100\r\n\r\n{",
                                  head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{"}) {
    Client slow(server.frontend->http_port());
    slow.send(part);
    EXPECT_EQ(slow.read().status, 408u) << part;
    EXPECT_TRUE(slow.ended());
  }
}

TEST(HttpServerTest, BoundsTheMemoryOfAllBodies) {
  FrontendOptions options;
  options.bodies_bytes_max = 100'000;
  TestServer server(options);
  const std::string head = "POST /v2/models/doubling/infer HTTP/1.1\r\nHost: x\r\n";
  const std::string body(300'000, ' ');
  for (const std::string& request :
       {head + "Content-Length: 300000\r\n\r\n" + body, head + "Transfer-Encoding: chunked\r\n\r\n493e0\r\n" + body}) {
    Client large(server.frontend->http_port());
    large.send(request);
    const Reply refused = large.read();
    EXPECT_EQ(refused.status, 503u);
    EXPECT_EQ(refused.header("Retry-After"), "1");
    Client small(server.frontend->http_port());
    EXPECT_EQ(small.ask("POST", "/v2/models/doubling/infer", kDoubling).status, 200u)
        << "the memory was not given back";
  }
}

// ---- Compressed answers

TEST(HttpServerTest, CompressesAnswersForClientsThatTakeIt) {
  TestServer server{FrontendOptions()};
  Client client(server.frontend->http_port());
  const auto infer = [&](size_t rows, const std::string& headers) {
    std::string data = "[1.5,2.5]";
    for (size_t i = 1; i < rows; ++i) data += ",[1.5,2.5]";
    return client.ask(
        "POST", "/v2/models/doubling/infer",
        fmt::format(R"({{"inputs":[{{"name":"x","shape":[{},2],"datatype":"FP32","data":[{}]}}]}})", rows, data),
        headers);
  };
  const Reply plain = infer(400, "");
  ASSERT_EQ(plain.status, 200u) << plain.body;
  EXPECT_EQ(plain.headers.count("Content-Encoding"), 0u);
  // The number in the log differs from request to request.
  const auto outputs = [](const std::string& body) { return nlohmann::json::parse(body)["outputs"]; };
  for (const char* encoding : {"gzip", "deflate"}) {
    const Reply reply = infer(400, fmt::format("Accept-Encoding: {}\r\n", encoding));
    EXPECT_EQ(reply.header("Content-Encoding"), encoding);
    EXPECT_LT(reply.body.size(), plain.body.size() / 4);
    const auto inflated = inflate_bytes(reply.body, 1 << 20);
    ASSERT_TRUE(inflated.ok());
    EXPECT_EQ(outputs(*inflated), outputs(plain.body));
  }
  EXPECT_EQ(infer(1, "Accept-Encoding: gzip\r\n").headers.count("Content-Encoding"), 0u) << "it fits a packet";
}

// 40,000 bytes of outputs become text on the decoding thread.
TEST(HttpServerTest, LongAnswersAreWrittenAsShortOnes) {
  TestServer server{FrontendOptions()};
  constexpr size_t kRows = 5000;
  nlohmann::json rows, doubled, values;
  for (size_t i = 0; i < kRows; ++i) {
    rows.push_back({i, 0.5});
    doubled.push_back({2 * i, 1.0});
    values.push_back(2 * i);
    values.push_back(1.0);
  }
  const nlohmann::json input = {{"name", "x"}, {"shape", {kRows, 2}}, {"datatype", "FP32"}, {"data", rows}};
  const std::string body = nlohmann::json{{"inputs", {input}}}.dump();
  Client client(server.frontend->http_port());
  const Reply reply = client.ask("POST", "/v2/models/doubling/infer", body);
  ASSERT_EQ(reply.status, 200u) << reply.body;
  EXPECT_EQ(reply.parsed()["outputs"][0]["data"], values);
  const Reply table = client.ask("POST", "/v1/models/doubling:predict", nlohmann::json{{"instances", rows}}.dump());
  ASSERT_EQ(table.status, 200u) << table.body;
  EXPECT_EQ(table.parsed()["predictions"], doubled);
  Client gone(server.frontend->http_port());
  gone.send(Client::request("POST", "/v2/models/doubling/infer", body, ""));
  gone.abort();
  EXPECT_EQ(client.ask("POST", "/v2/models/doubling/infer", kDoubling).status, 200u);
}

// ---- Refusals

TEST_F(HttpApiTest, RefusalsSayWhyAndWhenToTryAgain) {
  controller_.refuse(Refusal::kUnmeetable, "needs 12 ms", Duration::milliseconds(2500));
  const Reply reply = client_.ask("POST", kInfer, kDoubling);
  EXPECT_EQ(reply.status, 503u);
  EXPECT_EQ(reply.headers.count("Retry-After"), 0u) << "its deadline has passed by then";
  EXPECT_EQ(reply.parsed()["reason"], "unmeetable");
  EXPECT_EQ(reply.parsed()["earliest_completion_ms"], 2500);
  EXPECT_THAT(reply.body, HasSubstr("needs 12 ms"));

  controller_.refuse(Refusal::kOverload, "", Duration::milliseconds(2500));
  EXPECT_THAT(client_.ask("POST", kInfer, kDoubling).header("Retry-After"), "3");

  controller_.refuse(Refusal::kLate);
  EXPECT_EQ(client_.ask("POST", kInfer, kDoubling).status, 504u);

  controller_.refuse(Refusal::kUnmeetable);
  const std::string with_timeout = R"({"parameters":{"timeout":30},)" + std::string(kDoubling).substr(1);
  EXPECT_THAT(client_.ask("POST", kInfer, with_timeout).body,
              HasSubstr("its deadline was 0.030 ms after arrival (parameter 'timeout', in microseconds)"));
}

TEST_F(HttpApiTest, AnswersAndRefusalsCarryTheirNumberInTheLog) {
  const Reply answer = client_.ask("POST", kInfer, kDoubling);
  ASSERT_EQ(answer.status, 200u);
  controller_.refuse(Refusal::kOverload);
  const Reply refusal = client_.ask("POST", kInfer, kDoubling);
  const std::vector<Request> submitted = controller_.submitted();
  ASSERT_EQ(submitted.size(), 4u);  // of two rows each
  const std::string answered = std::to_string(submitted[1].id.value());
  EXPECT_EQ(answer.header("Foliot-Request"), answered) << "of the row that was last";
  EXPECT_EQ(answer.parsed()["parameters"]["foliot_request"], answered);
  const std::string refused = std::to_string(submitted[2].id.value());
  EXPECT_EQ(refusal.header("Foliot-Request"), refused);
  EXPECT_EQ(refusal.parsed()["request"], refused);
  EXPECT_THAT(refusal.parsed()["error"], HasSubstr("; request " + refused));
  EXPECT_EQ(client_.ask("POST", "/v2/models/absent/infer", kDoubling).header("Foliot-Request"), "")
      << "the controller never had it";
}

TEST_F(HttpApiTest, TheRowsOfACallShareItsId) {
  client_.ask("POST", kInfer, kDoubling);
  client_.ask("POST", kInfer, R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})");
  const auto labels = controller_.labels();
  ASSERT_EQ(labels.size(), 3u);
  EXPECT_EQ(labels[0]->text, "42");
  EXPECT_EQ(labels[0], labels[1]);
  EXPECT_EQ(labels[2], nullptr);
}

TEST_F(HttpApiTest, AnAnswerThatLeavesTooLateIsARefusal) {
  const Reply reply = client_.ask("POST", kInfer,
                                  R"({"parameters":{"timeout":1},)"
                                  R"("inputs":[{"name":"x","shape":[3,2],"datatype":"FP32","data":[1,2,3,4,5,6]}]})");
  EXPECT_EQ(reply.status, 504u);
  EXPECT_EQ(reply.parsed()["reason"], "late");
  const Reply metrics = Client(server_.frontend->metrics_port()).ask("GET", "/metrics");
  EXPECT_THAT(metrics.body, HasSubstr("foliot_requests_total{model=\"doubling\",outcome=\"late\"} 3\n"));
  EXPECT_THAT(metrics.body, HasSubstr("foliot_deadline_missed_total{model=\"doubling\"} 3\n"));
  EXPECT_THAT(metrics.body, HasSubstr("foliot_requests_total{model=\"doubling\",outcome=\"served\"} 0\n"));
}

TEST_F(HttpApiTest, MoreRowsThanMayBeInFlightAreOverload) {
  controller_.hold();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Client>(server_.frontend->http_port()));
    clients.back()->send(Client::request("POST", kInfer, kDoubling, ""));
  }
  controller_.await_submitted(8);
  const Reply reply = client_.ask("POST", kInfer, kDoubling);
  EXPECT_EQ(reply.status, 503u);
  EXPECT_EQ(reply.parsed()["reason"], "overload");
  controller_.release();
  for (const auto& client : clients) EXPECT_EQ(client->read().status, 200u);
  EXPECT_EQ(client_.ask("POST", kInfer, kDoubling).status, 200u);
}

TEST_F(HttpApiTest, AClientThatGoesAwayCancelsItsRows) {
  controller_.hold();
  Client leaving(server_.frontend->http_port());
  leaving.send(Client::request("POST", kInfer, kDoubling, ""));
  controller_.await_submitted(2);
  EXPECT_EQ(server_.service.rows_in_flight(), 2u);
  leaving.close();
  controller_.await_cancelled(2);
  controller_.release();
  EXPECT_EQ(client_.ask("POST", kInfer, kDoubling).status, 200u);
}

TEST_F(HttpApiTest, AClientThatClosesItsOwnSideGetsItsAnswer) {
  controller_.hold();
  Client reading(port());
  reading.send(Client::request("POST", kInfer, kDoubling, ""));
  controller_.await_submitted(2);
  reading.close_own_side();
  EXPECT_EQ(reading.read().status, 100u) << "the server has seen that, and asks whether the client reads";
  controller_.release();
  EXPECT_EQ(reading.read().status, 200u);
  EXPECT_TRUE(reading.ended());
  EXPECT_EQ(server_.service.rows_in_flight(), 0u);
}

TEST_F(HttpApiTest, AClientThatClosesItsOwnSideAndThenAllCancelsItsRows) {
  controller_.hold();
  Client leaving(port());
  leaving.send(Client::request("POST", kInfer, kDoubling, ""));
  controller_.await_submitted(2);
  leaving.close_own_side();
  EXPECT_EQ(leaving.read().status, 100u);
  leaving.abort();
  controller_.await_cancelled(2);
  controller_.release();
}

TEST_F(HttpApiTest, ARequestThatIsCutIsAnswered) {
  const std::string whole = Client::request("POST", kInfer, kDoubling, "");
  const std::string chunked =
      fmt::format("POST {} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n", kInfer);
  for (const std::string& cut : {whole.substr(0, 20), whole.substr(0, whole.size() - 5), chunked + "5\r\n{\"i"}) {
    Client client(port());
    client.send(cut);
    client.close_own_side();
    const Reply reply = client.read();
    EXPECT_EQ(reply.status, 400u) << cut;
    EXPECT_THAT(reply.body, HasSubstr("ends before its end"));
    EXPECT_TRUE(client.ended());
  }
  Client silent(port());
  silent.close_own_side();
  EXPECT_TRUE(silent.ended());
}

// Bodies that are decoded aside give the same answers.
TEST_F(HttpApiTest, LongBodiesAreAnsweredAsShortOnes) {
  const std::string spaces(100'000, ' ');
  for (const auto& [path, body, headers] :
       {std::tuple(std::string(kInfer), std::string(kDoubling), ""),
        {kInfer, R"({"id":"42","inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[[1,2],[3]]}]})", ""},
        {kInfer, "{", ""},
        {kInfer, kDoubling, "Inference-Header-Content-Length: 9999999\r\n"},
        {"/v2/models/nothing/infer", kDoubling, ""},
        {"/v2/personal/movies/predict", R"({"user":7,"items":[3,4]})", ""},
        {"/v2/personal/movies/predict", R"({"user":7})", ""},
        {"/v2/applications/nothing/feedback", R"({"feedback_id":"x","label":1})", ""},
        {"/v2/applications/nothing/feedback", R"({"feedback_id":"x"})", ""}}) {
    Client client(port());
    const Reply brief = client.ask("POST", path, body, headers);
    Client other(port());
    const Reply wide = other.ask("POST", path, body + spaces, headers);
    EXPECT_EQ(brief.status, wide.status) << path << body;
    const auto without_numbers = [](const Reply& reply) {
      nlohmann::json json = reply.parsed();
      if (json.contains("parameters")) json.erase("parameters");
      if (json.contains("error") && reply.body.find("Content-Length") != std::string::npos) json.erase("error");
      return json;
    };
    EXPECT_EQ(without_numbers(brief), without_numbers(wide)) << path << body;
  }
}

TEST_F(HttpApiTest, DrainingRefusesWhatIsNewAndAnswersWhatIsInFlight) {
  controller_.hold();
  Client early(server_.frontend->http_port());
  early.send(Client::request("POST", kInfer, kDoubling, ""));
  controller_.await_submitted(2);
  server_.names.drain();
  EXPECT_EQ(client_.ask("GET", "/v2/health/ready").status, 503u);
  EXPECT_EQ(client_.ask("GET", "/v2/health/live").status, 200u);
  EXPECT_EQ(client_.ask("POST", kInfer, kDoubling).parsed()["reason"], "draining");
  controller_.release();
  EXPECT_EQ(early.read().status, 200u);
}

TEST_F(HttpApiTest, StopsWithRequestsInFlight) {
  controller_.hold();
  client_.send(Client::request("POST", kInfer, kDoubling, ""));
  controller_.await_submitted(2);
}

TEST_F(HttpApiTest, ReadsOfConnectionsThatEndMidwayAreForgotten) {
  for (const size_t bytes : {size_t{1}, size_t{20}, size_t{80}}) {
    Client quitter(server_.frontend->http_port());
    quitter.send(Client::request("POST", kInfer, kDoubling, "").substr(0, bytes));
    quitter.close();
  }
  EXPECT_EQ(client_.ask("POST", kInfer, kDoubling).status, 200u);
}

// ---- Numbers

TEST_F(HttpApiTest, CountsWhatHappened) {
  EXPECT_EQ(client_.ask("POST", kInfer, kDoubling).status, 200u);
  controller_.refuse(Refusal::kExpired);
  EXPECT_EQ(client_.ask("POST", kInfer, kDoubling).status, 504u);

  const nlohmann::json stats = client_.ask("GET", "/v2/models/doubling/stats").parsed()["model_stats"][0];
  EXPECT_EQ(stats["version"], "1");
  EXPECT_EQ(stats["inference_count"], 2);
  EXPECT_EQ(stats["execution_count"], 2);
  EXPECT_EQ(stats["inference_stats"]["success"]["count"], 1);
  EXPECT_EQ(stats["inference_stats"]["fail"]["count"], 1);
  EXPECT_EQ(stats["inference_stats"]["queue"]["count"], 1);
  for (const char* name : {"compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"})
    EXPECT_TRUE(stats["inference_stats"][name].contains("ns")) << name;
  EXPECT_EQ(stats["batch_stats"][0]["batch_size"], 1);
  EXPECT_GT(stats["last_inference"], 0);
  EXPECT_EQ(client_.ask("GET", "/v2/models/stats").parsed()["model_stats"].size(), 3u);

  Client scraper(server_.frontend->metrics_port());
  const Reply metrics = scraper.ask("GET", "/metrics");
  EXPECT_EQ(metrics.status, 200u);
  EXPECT_THAT(metrics.body, HasSubstr("foliot_requests_total{model=\"doubling\",outcome=\"expired\"} 2\n"));
  EXPECT_THAT(metrics.body, HasSubstr("nv_inference_count{model=\"doubling\",version=\"1\"} 2\n"));
  EXPECT_EQ(scraper.ask("GET", "/other").status, 404u);
  EXPECT_EQ(scraper.ask("POST", "/metrics").status, 405u);
}

// ---- Starting

TEST_F(HttpApiTest, PortsInUseAreNamedWithTheirFlag) {
  FrontendOptions options;
  options.http_port = options.grpc_port = options.metrics_port = 0;
  const auto error_with = [&](uint16_t FrontendOptions::*port, uint16_t taken) {
    FrontendOptions clashing = options;
    clashing.*port = taken;
    const auto frontend = server_.make(clashing);
    const Status status = frontend->start();
    EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
    return status.message();
  };
  const Frontend& running = *server_.frontend;
  EXPECT_THAT(error_with(&FrontendOptions::http_port, running.http_port()),
              AllOf(HasSubstr("--http-port"), HasSubstr(std::to_string(running.http_port()))));
  EXPECT_THAT(error_with(&FrontendOptions::metrics_port, running.metrics_port()), HasSubstr("--metrics-port"));
  EXPECT_THAT(error_with(&FrontendOptions::grpc_port, running.grpc_port()), HasSubstr("--grpc-port"));
}

}  // namespace
}  // namespace foliot
