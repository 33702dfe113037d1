// The real server on a loopback port.
#include "edge/grpc/grpc_feedback.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <limits>

#include "edge/frontend/test_server.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

class GrpcFeedbackTest : public ::testing::Test {
 protected:
  grpc::Status send(const applications::FeedbackRequest& request) {
    grpc::ClientContext context;
    applications::FeedbackResponse response;
    return stub_->Feedback(&context, request, &response);
  }

  TestServer server_;
  std::unique_ptr<applications::Applications::Stub> stub_ = applications::Applications::NewStub(grpc::CreateChannel(
      fmt::format("127.0.0.1:{}", server_.frontend->grpc_port()), grpc::InsecureChannelCredentials()));
};

TEST_F(GrpcFeedbackTest, ErrorsAreThoseOfWhatLearns) {
  applications::FeedbackRequest request;
  request.set_application("doubling");
  EXPECT_THAT(send(request).error_message(), HasSubstr("'feedback_id' must be there"));
  request.set_feedback_id("x");
  EXPECT_THAT(send(request).error_message(), HasSubstr("send either a 'label' or a 'loss'"));
  EXPECT_EQ(send(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.add_label(1);
  EXPECT_EQ(send(request).error_code(), grpc::StatusCode::UNIMPLEMENTED) << "a model";
  request.set_application("nothing");
  EXPECT_EQ(send(request).error_code(), grpc::StatusCode::NOT_FOUND);
  request.add_losses()->set_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(send(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace foliot
