// The real server on a loopback port, over jobs that nothing runs.
#include "edge/http/http_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "edge/frontend/test_server.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

struct JobReply {
  unsigned status = 0;
  std::string location;
  nlohmann::json body;
  std::string error() const { return body.value("error", ""); }
};

JobReply ask_for_jobs(uint16_t port, boost::beast::http::verb method, const std::string& target,
                      const std::string& body = "", const std::string& key = "") {
  namespace beast_http = boost::beast::http;
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  beast_http::request<beast_http::string_body> request(method, target, 11);
  request.set(beast_http::field::host, "localhost");
  if (!key.empty()) request.set(beast_http::field::authorization, "Bearer " + key);
  request.body() = body;
  request.prepare_payload();
  beast_http::write(socket, request);
  boost::beast::flat_buffer buffer;
  beast_http::response<beast_http::string_body> response;
  beast_http::read(socket, buffer, response);
  return {.status = response.result_int(),
          .location = std::string(response[beast_http::field::location]),
          .body = nlohmann::json::parse(response.body(), nullptr, false)};
}

std::shared_ptr<const KeyRing> ring_for_jobs() {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto file = std::filesystem::path(::testing::TempDir()) / ("foliot_job_keys_" + test + ".toml");
  std::ofstream stream(file);
  for (const auto& [name, scopes] :
       {std::pair("one", "'jobs'"), {"two", "'jobs'"}, {"caller", "'infer'"}, {"operator", "'jobs', 'admin'"}}) {
    stream << fmt::format("[[keys]]\nname = '{}'\nscopes = [{}]\nsha256 = '{}'\n", name, scopes,
                          to_hexadecimal(digest_of(name)));
  }
  stream.close();
  return std::make_shared<const KeyRing>(KeyRing::read(file).value());
}

constexpr auto kGet = boost::beast::http::verb::get;
constexpr auto kPost = boost::beast::http::verb::post;

TEST(HttpJobs, SubmitsListsShowsAndCancels) {
  TestServer server;
  const uint16_t port = server.frontend->http_port();
  const JobReply submitted =
      ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"offline","model":"m","webhook":"http://h/"})");
  EXPECT_EQ(submitted.status, 202u);
  EXPECT_EQ(submitted.location, "/v2/jobs/job1");
  EXPECT_EQ(submitted.body["state"], "queued");
  EXPECT_EQ(submitted.body["request"], nlohmann::json({{"model", "m"}}));
  EXPECT_EQ(submitted.body["webhook"]["url"], "http://h/");
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/job1").body, submitted.body);
  ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"offline"})");
  const JobReply listed = ask_for_jobs(port, kGet, "/v2/jobs");
  ASSERT_EQ(listed.body["jobs"].size(), 2u);
  EXPECT_EQ(listed.body["jobs"][1]["id"], "job2");
  const JobReply cancelled = ask_for_jobs(port, kPost, "/v2/jobs/job1/cancel", "{}");
  EXPECT_EQ(cancelled.status, 200u);
  EXPECT_EQ(cancelled.body["state"], "cancelled");
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs/job1/cancel").status, 409u);
}

TEST(HttpJobs, WrongRequestsAreNamed) {
  TestServer server;
  const uint16_t port = server.frontend->http_port();
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs", "nonsense").status, 400u);
  const JobReply wrong = ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"wrong"})");
  EXPECT_EQ(wrong.status, 400u);
  EXPECT_EQ(wrong.error(), "it is wrong");
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/absent").status, 404u);
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs/absent/cancel").status, 404u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs?state=running").status, 400u);
  EXPECT_EQ(ask_for_jobs(port, boost::beast::http::verb::delete_, "/v2/jobs").status, 405u);
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs/absent", "{}").status, 405u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/a/b").status, 404u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/a/cancel/b").status, 404u);
  ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"offline"})");
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs/job1/cancel", R"({"at":"once"})").status, 400u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/job1").body["state"], "queued");
}

TEST(HttpJobs, WithoutJobsTheErrorSaysHowToHaveThem) {
  TestServer server;
  FrontendParts parts{.inference = server.service,
                      .names = server.names,
                      .statistics = server.statistics,
                      .repository = server.repository,
                      .count_unknown_name = [](std::string_view, std::string_view) {},
                      .now = steady_now};
  const auto without = make_frontend({.http_port = 0, .grpc_port = 0, .metrics_port = 0}, parts);
  ASSERT_TRUE(without->start().ok());
  const JobReply reply = ask_for_jobs(without->http_port(), kGet, "/v2/jobs");
  EXPECT_EQ(reply.status, 501u);
  EXPECT_THAT(reply.error(), HasSubstr("--jobs FOLDER"));
  without->stop();
}

TEST(HttpJobs, KeysSeeTheirOwn) {
  FrontendOptions options;
  options.keys = ring_for_jobs();
  TestServer server(options);
  const uint16_t port = server.frontend->http_port();
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs").status, 401u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs", "", "caller").status, 403u);
  const JobReply submitted = ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"offline","owner":"two"})", "one");
  EXPECT_EQ(submitted.body["owner"], "one") << "whatever the client wrote";
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/job1", "", "one").status, 200u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/job1", "", "two").status, 404u);
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs/job1/cancel", "", "two").status, 404u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs", "", "two").body["jobs"].size(), 0u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs", "", "operator").body["jobs"].size(), 1u);
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs/job1/cancel", "", "operator").status, 200u);
}

TEST(HttpJobs, ARegistrationNeedsTheScopeOfOperators) {
  FrontendOptions options;
  options.keys = ring_for_jobs();
  TestServer server(options);
  const uint16_t port = server.frontend->http_port();
  const JobReply refused = ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"register"})", "one");
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(refused.error(), HasSubstr("no scope 'admin'"));
  EXPECT_EQ(ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"register"})", "operator").status, 202u);
}

TEST(HttpJobs, ThePortOfOperatorsHasThem) {
  FrontendOptions options;
  options.admin_port = 0;
  TestServer server(options);
  EXPECT_EQ(ask_for_jobs(server.frontend->http_port(), kGet, "/v2/jobs").status, 404u);
  EXPECT_EQ(ask_for_jobs(*server.frontend->admin_port(), kGet, "/v2/jobs").status, 200u);
}

TEST(HttpJobs, TenantsAreFoundByTheNamesOfTheirKeys) {
  FrontendOptions options;
  options.keys = ring_for_jobs();
  TestServer server(options);
  EXPECT_EQ((*server.frontend->tenant_named("one"))->statistics().name, "one");
  EXPECT_EQ(*server.frontend->tenant_named(""), nullptr);
  EXPECT_THAT(server.frontend->tenant_named("gone").status().message(), HasSubstr("'gone' is not in the keys file"));
}

TEST(HttpJobs, WhatCannotBeReadYetIsNotShownAsNone) {
  TestServer server;
  server.jobs.set_readable(Status::unavailable("not read yet"));
  const uint16_t port = server.frontend->http_port();
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs").status, 503u);
  EXPECT_EQ(ask_for_jobs(port, kGet, "/v2/jobs/job1").status, 503u);
  const JobReply refused = ask_for_jobs(port, kPost, "/v2/jobs", R"({"kind":"offline"})");
  EXPECT_EQ(refused.status, 503u);
  EXPECT_EQ(refused.error(), "not read yet");
}

}  // namespace
}  // namespace foliot
