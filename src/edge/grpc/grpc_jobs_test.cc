// The real server on a loopback port, over jobs that nothing runs.
#include "edge/grpc/grpc_jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "edge/frontend/test_server.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const KeyRing> ring_for_grpc_jobs() {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto file = std::filesystem::path(::testing::TempDir()) / ("foliot_grpc_job_keys_" + test + ".toml");
  std::ofstream stream(file);
  for (const auto& [name, scopes] :
       {std::pair("one", "'jobs'"), {"two", "'jobs'"}, {"caller", "'infer'"}, {"operator", "'jobs', 'admin'"}}) {
    stream << fmt::format("[[keys]]\nname = '{}'\nscopes = [{}]\nsha256 = '{}'\n", name, scopes,
                          to_hexadecimal(digest_of(name)));
  }
  stream.close();
  return std::make_shared<const KeyRing>(KeyRing::read(file).value());
}

class JobsClient {
 public:
  explicit JobsClient(const Frontend& frontend, std::string key = "")
      : key_(std::move(key)),
        stub_(jobs::Jobs::NewStub(grpc::CreateChannel(fmt::format("127.0.0.1:{}", frontend.grpc_port()),
                                                      grpc::InsecureChannelCredentials()))) {}

  grpc::Status submit(const jobs::SubmitRequest& request) {
    return call([&](auto& context) { return stub_->Submit(&context, request, &job_); });
  }
  grpc::Status show(const std::string& id) {
    jobs::ShowRequest request;
    request.set_id(id);
    return call([&](auto& context) { return stub_->Show(&context, request, &job_); });
  }
  grpc::Status cancel(const std::string& id) {
    jobs::CancelRequest request;
    request.set_id(id);
    return call([&](auto& context) { return stub_->Cancel(&context, request, &job_); });
  }
  grpc::Status list() {
    return call([&](auto& context) { return stub_->List(&context, jobs::ListRequest(), &listed_); });
  }

  jobs::Job job_;
  jobs::ListResponse listed_;

 private:
  grpc::Status call(const auto& method) {
    grpc::ClientContext context;
    if (!key_.empty()) context.AddMetadata("authorization", "Bearer " + key_);
    return method(context);
  }

  const std::string key_;
  const std::unique_ptr<jobs::Jobs::Stub> stub_;
};

jobs::SubmitRequest offline_request() {
  jobs::SubmitRequest request;
  request.mutable_offline()->set_model("m");
  (*request.mutable_offline()->mutable_inputs())["x"] = "rows.npy";
  request.mutable_offline()->set_output("answers");
  request.set_webhook("http://h/");
  return request;
}

jobs::SubmitRequest registration_request() {
  jobs::SubmitRequest request;
  request.mutable_registration()->set_task("digits");
  request.mutable_registration()->set_file("d.onnx");
  request.mutable_registration()->add_batch_sizes(4);
  request.mutable_registration()->set_accuracy(0);
  return request;
}

TEST(GrpcJobs, SubmitsListsShowsAndCancels) {
  TestServer server;
  JobsClient client(*server.frontend);
  ASSERT_TRUE(client.submit(offline_request()).ok());
  EXPECT_EQ(client.job_.id(), "job1");
  EXPECT_EQ(client.job_.kind(), "offline");
  EXPECT_EQ(client.job_.state(), "queued");
  EXPECT_EQ(client.job_.webhook().url(), "http://h/");
  EXPECT_EQ(nlohmann::json::parse(client.job_.request()),
            nlohmann::json::parse(R"({"model":"m","inputs":{"x":"rows.npy"},"output":"answers"})"));
  ASSERT_TRUE(client.submit(registration_request()).ok());
  EXPECT_EQ(client.job_.kind(), "register");
  EXPECT_EQ(nlohmann::json::parse(client.job_.request()),
            nlohmann::json::parse(R"({"task":"digits","file":"d.onnx","batch_sizes":[4],"accuracy":0})"));
  ASSERT_TRUE(client.list().ok());
  ASSERT_EQ(client.listed_.jobs_size(), 2);
  EXPECT_EQ(client.listed_.jobs(1).id(), "job2");
  ASSERT_TRUE(client.cancel("job1").ok());
  EXPECT_EQ(client.job_.state(), "cancelled");
  ASSERT_TRUE(client.show("job1").ok());
  EXPECT_EQ(client.job_.state(), "cancelled");
  EXPECT_EQ(client.cancel("job1").error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST(GrpcJobs, WrongRequestsAreNamed) {
  TestServer server;
  JobsClient client(*server.frontend);
  const grpc::Status empty = client.submit({});
  EXPECT_EQ(empty.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(empty.error_message(), HasSubstr("'job' is missing"));
  EXPECT_EQ(client.show("absent").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(client.cancel("absent").error_message(), HasSubstr("there is no job 'absent'"));
  jobs::SubmitRequest long_one = offline_request();
  long_one.mutable_offline()->set_output(std::string(kJobRequestBytesMax, 'x'));
  EXPECT_THAT(client.submit(long_one).error_message(), HasSubstr("at most 16384 are allowed"));
}

TEST(GrpcJobs, KeysSeeTheirOwn) {
  FrontendOptions options;
  options.keys = ring_for_grpc_jobs();
  TestServer server(options);
  JobsClient without_key(*server.frontend), one(*server.frontend, "one"), two(*server.frontend, "two");
  JobsClient caller(*server.frontend, "caller"), owner(*server.frontend, "operator");
  EXPECT_EQ(without_key.list().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(caller.list().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(caller.submit(offline_request()).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(one.submit(offline_request()).ok());
  EXPECT_EQ(one.job_.owner(), "one");
  EXPECT_TRUE(one.show("job1").ok());
  EXPECT_EQ(two.show("job1").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(two.cancel("job1").error_code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(two.list().ok());
  EXPECT_EQ(two.listed_.jobs_size(), 0);
  ASSERT_TRUE(owner.list().ok());
  EXPECT_EQ(owner.listed_.jobs_size(), 1);
  EXPECT_TRUE(owner.cancel("job1").ok());
}

TEST(GrpcJobs, ARegistrationNeedsTheScopeOfOperators) {
  FrontendOptions options;
  options.keys = ring_for_grpc_jobs();
  TestServer server(options);
  const grpc::Status refused = JobsClient(*server.frontend, "one").submit(registration_request());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("no scope 'admin'"));
  EXPECT_TRUE(JobsClient(*server.frontend, "operator").submit(registration_request()).ok());
}

TEST(GrpcJobs, WithAPortOfOperatorsTheyAreThereAlone) {
  FrontendOptions options;
  options.admin_port = 0;
  TestServer server(options);
  EXPECT_EQ(JobsClient(*server.frontend).list().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(GrpcJobs, WithoutJobsTheErrorSaysHowToHaveThem) {
  TestServer server;
  FrontendParts parts{.inference = server.service,
                      .names = server.names,
                      .statistics = server.statistics,
                      .repository = server.repository,
                      .count_unknown_name = [](std::string_view, std::string_view) {},
                      .now = steady_now};
  const auto without = make_frontend({.http_port = 0, .grpc_port = 0, .metrics_port = 0}, parts);
  ASSERT_TRUE(without->start().ok());
  for (const grpc::Status& status : {JobsClient(*without).list(), JobsClient(*without).show("a")}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_THAT(status.error_message(), HasSubstr("--jobs FOLDER"));
  }
  without->stop();
}

TEST(GrpcJobs, WhatCannotBeReadYetIsNotShownAsNone) {
  TestServer server;
  server.jobs.set_readable(Status::unavailable("not read yet"));
  JobsClient client(*server.frontend);
  for (const grpc::Status& status : {client.list(), client.show("a"), client.submit(offline_request())}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), "not read yet");
  }
}

}  // namespace
}  // namespace foliot
