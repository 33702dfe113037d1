// Authentication: the real server on loopback ports, with keys and with TLS.
#include "edge/requests/gate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <health.grpc.pb.h>
#include <inference.grpc.pb.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fstream>
#include <mutex>

#include "edge/frontend/test_server.h"
#include "foundation/access/test_certificates.h"

namespace foliot {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kDoublingBody = R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})";

using HttpRequest = http::request<http::string_body>;
using Response = http::response<http::string_body>;

HttpRequest request_for(http::verb method, const std::string& target, const std::string& key = "",
                        const std::string& body = "") {
  HttpRequest request(method, target, 11);
  request.set(http::field::host, "localhost");
  if (!key.empty()) request.set(http::field::authorization, "Bearer " + key);
  request.body() = body;
  request.prepare_payload();
  return request;
}

template <typename Stream>
Response send_and_read(Stream& stream, const HttpRequest& request) {
  http::write(stream, request);
  boost::beast::flat_buffer buffer;
  Response response;
  http::read(stream, buffer, response);
  return response;
}

net::ip::tcp::socket connect(net::io_context& context, uint16_t port) {
  net::ip::tcp::socket socket(context);
  socket.connect({net::ip::make_address("127.0.0.1"), port});
  return socket;
}

Response ask(uint16_t port, const HttpRequest& request) {
  net::io_context context;
  net::ip::tcp::socket socket = connect(context, port);
  return send_and_read(socket, request);
}

// `limits` is TOML for each key.
std::shared_ptr<const KeyRing> ring_of(const std::vector<std::pair<std::string, std::string>>& scopes_of_keys,
                                       const std::string& limits = "") {
  // Tests run side by side.
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto file = std::filesystem::path(::testing::TempDir()) / ("foliot_gate_" + test + ".toml");
  std::ofstream stream(file);
  for (const auto& [key, scope] : scopes_of_keys) {
    stream << fmt::format("[[keys]]\nname = 'the {}'\nscopes = ['{}']\nsha256 = '{}'\n{}\n", key, scope,
                          to_hexadecimal(digest_of(key)), limits);
  }
  stream.close();
  return std::make_shared<const KeyRing>(KeyRing::read(file).value());
}

// What was written to the log, from whichever thread.
class Log {
 public:
  void add(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

class KeysTest : public ::testing::Test {
 protected:
  FrontendOptions options() {
    FrontendOptions options;
    options.keys = ring_of({{"client", "infer"},
                            {"operator", "admin"},
                            {"scraper", "metrics"},
                            {"teacher", "feedback"},
                            {"observer", "observe"}});
    options.on_denial = [this](const std::string& line) { log_.add(line); };
    return options;
  }
  unsigned http(http::verb method, const std::string& target, const std::string& key, const std::string& body = "") {
    return ask(server_.frontend->http_port(), request_for(method, target, key, body)).result_int();
  }
  grpc::Status grpc_infer(const std::string& key) {
    grpc::ClientContext context;
    if (!key.empty()) context.AddMetadata("authorization", "Bearer " + key);
    inference::ModelInferRequest request;
    request.set_model_name("doubling");
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, request, &response);
  }

  // As kDoublingBody.
  grpc::Status grpc_infer_rows(const std::string& key) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + key);
    inference::ModelInferRequest request;
    request.set_model_name("doubling");
    auto* tensor = request.add_inputs();
    tensor->set_name("x");
    tensor->set_datatype("FP32");
    tensor->add_shape(1);
    tensor->add_shape(2);
    request.add_raw_input_contents(std::string(8, '\0'));
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, request, &response);
  }

  Log log_;
  TestServer server_{options()};
  std::shared_ptr<grpc::Channel> channel_ = grpc::CreateChannel(
      fmt::format("127.0.0.1:{}", server_.frontend->grpc_port()), grpc::InsecureChannelCredentials());
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_ = inference::GRPCInferenceService::NewStub(channel_);
};

TEST_F(KeysTest, AdmitTheirOwnersOverHttp) {
  const std::string infer = "/v2/models/doubling/infer";
  EXPECT_EQ(http(http::verb::post, infer, "client", kDoublingBody), 200u);
  EXPECT_EQ(http(http::verb::post, infer, "", kDoublingBody), 401u);
  EXPECT_EQ(http(http::verb::post, infer, "guessed", kDoublingBody), 401u);
  EXPECT_EQ(http(http::verb::post, infer, "operator", kDoublingBody), 403u);
  EXPECT_EQ(http(http::verb::get, "/v2/models/doubling", ""), 401u);
  EXPECT_EQ(http(http::verb::post, "/v2/repository/models/doubling/load", "operator"), 200u);
  EXPECT_EQ(http(http::verb::post, "/v2/repository/models/doubling/load", "client"), 403u);
  // However it is written.
  EXPECT_EQ(http(http::verb::post, "//v2/%72epository/models/doubling/load", "client"), 403u);
  EXPECT_EQ(http(http::verb::get, "/v2/health/ready", ""), 200u);
  for (const char* path : {"/v2/applications/a/feedback", "//v2/%61pplications/a/feedback"}) {
    EXPECT_EQ(http(http::verb::post, path, "teacher", "{}"), 400u) << "let in: it has no id";
    EXPECT_EQ(http(http::verb::post, path, "client", "{}"), 403u);
  }
  EXPECT_EQ(http(http::verb::get, "/v2/models/doubling", "teacher"), 403u);
  for (const char* method : {"observe", "forget"}) {
    for (const std::string prefix : {"/v2/personal/movies/", "//v2/p%65rsonal/movies/"}) {
      EXPECT_EQ(http(http::verb::post, prefix + method, "observer", "{}"), 400u) << "let in: it has no user";
      EXPECT_EQ(http(http::verb::post, prefix + method, "client", "{}"), 403u);
    }
  }
  EXPECT_EQ(http(http::verb::post, "/v2/personal/movies/predict", "client", "{}"), 400u);
  EXPECT_EQ(http(http::verb::post, "/v2/personal/movies/topk", "observer", "{}"), 403u);
}

TEST_F(KeysTest, AdmitTheirOwnersOverGrpc) {
  EXPECT_EQ(grpc_infer("client").error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "let in: it has no inputs";
  EXPECT_EQ(grpc_infer("").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(grpc_infer("guessed").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(grpc_infer("scraper").error_code(), grpc::StatusCode::PERMISSION_DENIED);

  grpc::ClientContext unload_context;
  unload_context.AddMetadata("authorization", "Bearer client");
  inference::RepositoryModelUnloadResponse unloaded;
  EXPECT_EQ(stub_->RepositoryModelUnload(&unload_context, {}, &unloaded).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  grpc::ClientContext health_context;
  grpc::health::v1::HealthCheckResponse healthy;
  EXPECT_TRUE(grpc::health::v1::Health::NewStub(channel_)->Check(&health_context, {}, &healthy).ok());
}

TEST_F(KeysTest, EndAStreamBeforeItBegins) {
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  inference::ModelStreamInferResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(KeysTest, CoverTheMetrics) {
  const uint16_t port = server_.frontend->metrics_port();
  EXPECT_EQ(ask(port, request_for(http::verb::get, "/metrics", "scraper")).result_int(), 200u);
  EXPECT_EQ(ask(port, request_for(http::verb::get, "/metrics", "client")).result_int(), 403u);
  EXPECT_EQ(ask(port, request_for(http::verb::get, "/metrics")).result_int(), 401u);
}

TEST_F(KeysTest, TurnAwayBeforeTheBodyIsSent) {
  net::io_context context;
  net::ip::tcp::socket socket = connect(context, server_.frontend->http_port());
  net::write(socket, net::buffer(std::string("POST /v2/models/doubling/infer HTTP/1.1\r\nHost: x\r\n"
                                             "Content-Length: 10000000\r\n\r\n")));
  boost::beast::flat_buffer buffer;
  Response response;
  http::read(socket, buffer, response);
  EXPECT_EQ(response.result_int(), 401u);
  EXPECT_EQ(response[http::field::www_authenticate], "Bearer");
  EXPECT_FALSE(response.keep_alive());
}

TEST_F(KeysTest, AreNeverInTheLog) {
  http(http::verb::post, "/v2/models/doubling/infer", "guessed-secret", kDoublingBody);
  http(http::verb::post, "/v2/repository/models/a%0Ab/load", "client");
  EXPECT_THAT(log_.lines(), Contains(AllOf(HasSubstr("127.0.0.1"), HasSubstr("unknown key"))));
  EXPECT_THAT(log_.lines(), Contains(AllOf(HasSubstr("'the client'"), HasSubstr("no scope 'admin'"))));
  for (const std::string& line : log_.lines()) EXPECT_THAT(line, AllOf(Not(HasSubstr("secret")), Not(HasSubstr("\n"))));
}

TEST_F(KeysTest, AreReplacedWhileServing) {
  const std::string infer = "/v2/models/doubling/infer";
  server_.frontend->use_keys(ring_of({{"new client", "infer"}}));
  EXPECT_EQ(http(http::verb::post, infer, "client", kDoublingBody), 401u);
  EXPECT_EQ(http(http::verb::post, infer, "new client", kDoublingBody), 200u);
}

TEST_F(KeysTest, LimitWhatTheirHoldersAskFor) {
  server_.frontend->use_keys(ring_of({{"client", "infer"}, {"scraper", "metrics"}}, "requests_in_flight = 1"));
  const uint16_t port = server_.frontend->http_port();
  const HttpRequest infer = request_for(http::verb::post, "/v2/models/doubling/infer", "client", kDoublingBody);
  server_.controller.hold();
  net::io_context context;
  net::ip::tcp::socket first = connect(context, port);
  http::write(first, infer);
  server_.controller.await_submitted(1);
  const Response refused = ask(port, infer);
  EXPECT_EQ(refused.result_int(), 429u);
  EXPECT_EQ(refused[http::field::retry_after], "1");
  EXPECT_THAT(refused.body(), HasSubstr(R"("reason":"quota")"));
  server_.controller.release();
  boost::beast::flat_buffer buffer;
  Response answer;
  http::read(first, buffer, answer);
  EXPECT_EQ(answer.result_int(), 200u);

  server_.frontend->use_keys(ring_of({{"client", "infer"}, {"scraper", "metrics"}}, "requests_per_second = 0.001"));
  EXPECT_EQ(ask(port, infer).result_int(), 200u);
  EXPECT_EQ(ask(port, infer).result_int(), 429u);
  EXPECT_EQ(grpc_infer_rows("client").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const Response metrics = ask(server_.frontend->metrics_port(), request_for(http::verb::get, "/metrics", "scraper"));
  EXPECT_THAT(metrics.body(), HasSubstr("foliot_tenant_requests_total{tenant=\"the client\",outcome=\"admitted\"} 2"));
  EXPECT_THAT(metrics.body(), HasSubstr("foliot_tenant_requests_total{tenant=\"the client\",outcome=\"rate\"} 2"));
}

TEST(AdminPortTest, ServesTheRepositoryAndNothingElseDoes) {
  FrontendOptions options;
  options.admin_port = 0;
  TestServer server(options);
  const HttpRequest index = request_for(http::verb::post, "/v2/repository/index");
  const HttpRequest metadata = request_for(http::verb::get, "/v2/models/doubling");
  EXPECT_EQ(ask(*server.frontend->admin_port(), index).result_int(), 200u);
  EXPECT_EQ(ask(*server.frontend->admin_port(), metadata).result_int(), 404u);
  EXPECT_EQ(ask(server.frontend->http_port(), index).result_int(), 404u);
  EXPECT_EQ(ask(server.frontend->http_port(), metadata).result_int(), 200u);
}

class TlsTest : public ::testing::Test {
 protected:
  FrontendOptions options() {
    FrontendOptions options;
    options.tls = TlsIdentity{server_identity_.certificate, server_identity_.private_key, client_identity_.certificate};
    return options;
  }
  // As a client that shows `identity`. Throws if there is no connection to be had.
  Response ask_with(const TestCertificate* identity) {
    net::io_context context;
    net::ssl::context tls(net::ssl::context::tls_client);
    tls.add_certificate_authority(net::buffer(server_identity_.certificate));
    tls.set_verify_mode(net::ssl::verify_peer);
    if (identity != nullptr) {
      tls.use_certificate(net::buffer(identity->certificate), net::ssl::context::pem);
      tls.use_private_key(net::buffer(identity->private_key), net::ssl::context::pem);
    }
    net::ssl::stream<net::ip::tcp::socket> stream(connect(context, server_.frontend->http_port()), tls);
    stream.handshake(net::ssl::stream_base::client);
    return send_and_read(stream, request_for(http::verb::post, "/v2/models/doubling/infer", "", kDoublingBody));
  }
  grpc::Status grpc_health(const TestCertificate& identity) {
    const grpc::SslCredentialsOptions tls{server_identity_.certificate, identity.private_key, identity.certificate};
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");  // resolving it leaks some bytes
    const auto channel = grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", server_.frontend->grpc_port()),
                                                   grpc::SslCredentials(tls), arguments);
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(channel)->Check(&context, {}, &response);
  }

  TestCertificate server_identity_ = make_test_certificate();
  const TestCertificate client_identity_ = make_test_certificate({.name = "client"});
  const TestCertificate expired_identity_ = make_test_certificate({.name = "client", .days = -1});
  TestServer server_{options()};
};

TEST_F(TlsTest, AnswersClientsWithACertificate) {
  EXPECT_EQ(ask_with(&client_identity_).result_int(), 200u);
  EXPECT_TRUE(grpc_health(client_identity_).ok());
}

TEST_F(TlsTest, AnswersNoOtherClients) {
  EXPECT_ANY_THROW(ask_with(nullptr));
  EXPECT_ANY_THROW(ask_with(&server_identity_));
  EXPECT_ANY_THROW(ask_with(&expired_identity_));
  EXPECT_ANY_THROW(ask(server_.frontend->http_port(), request_for(http::verb::get, "/v2")));
  EXPECT_FALSE(grpc_health(expired_identity_).ok());
}

TEST_F(TlsTest, ItsCertificateIsReplacedWhileServing) {
  EXPECT_TRUE(grpc_health(client_identity_).ok());
  const TestCertificate renewed = make_test_certificate();
  const TestCertificate other_client = make_test_certificate({.name = "client"});
  EXPECT_FALSE(server_.frontend->use_tls({renewed.certificate, "no key", other_client.certificate}).ok());
  EXPECT_EQ(ask_with(&client_identity_).result_int(), 200u) << "what cannot be used changes nothing";
  ASSERT_TRUE(server_.frontend->use_tls({renewed.certificate, renewed.private_key, other_client.certificate}).ok());
  EXPECT_ANY_THROW(ask_with(&client_identity_));
  EXPECT_FALSE(grpc_health(client_identity_).ok());
  server_identity_ = renewed;
  EXPECT_EQ(ask_with(&other_client).result_int(), 200u);
  EXPECT_TRUE(grpc_health(other_client).ok());
}

}  // namespace
}  // namespace foliot
