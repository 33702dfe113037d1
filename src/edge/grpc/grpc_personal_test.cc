// The real server on a loopback port, over a fake personal model.
#include "edge/grpc/grpc_personal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>

#include "edge/frontend/test_server.h"
#include "edge/requests/personal_request.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;

class GrpcPersonalTest : public ::testing::Test {
 protected:
  using Stub = personal::PersonalModels::Stub;

  template <typename Response, typename Method, typename Request>
  Response call(Method method, const Request& request, grpc::StatusCode expected = grpc::StatusCode::OK) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    EXPECT_EQ(status.error_code(), expected) << status.error_message();
    return response;
  }

  TestServer server_;
  std::unique_ptr<Stub> stub_ = personal::PersonalModels::NewStub(grpc::CreateChannel(
      fmt::format("127.0.0.1:{}", server_.frontend->grpc_port()), grpc::InsecureChannelCredentials()));
};

TEST_F(GrpcPersonalTest, Predicts) {
  personal::PredictRequest request;
  request.set_model("movies");
  auto* const pair = request.add_pairs();
  pair->mutable_user()->set_number(7);
  pair->set_item(3);
  request.set_timeout(2000);
  const auto response = call<personal::PredictResponse>(&Stub::Predict, request);
  EXPECT_EQ(response.version(), "3");
  EXPECT_THAT(response.predictions(), ElementsAre(10));
  EXPECT_EQ(server_.personal.seen().timeout, Duration::milliseconds(2));
  request.clear_timeout();
  call<personal::PredictResponse>(&Stub::Predict, request);
  // That of gRPC, which sends it with few digits, rounded up.
  EXPECT_GT(server_.personal.seen().timeout, Duration::seconds(50));
  EXPECT_LT(server_.personal.seen().timeout, Duration::seconds(61));
  request.set_model("books");
  call<personal::PredictResponse>(&Stub::Predict, request, grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcPersonalTest, ListsTheBest) {
  personal::TopKRequest request;
  request.set_model("movies");
  request.add_users()->set_text("ada");
  request.add_items(5);
  request.set_k(2);
  const auto response = call<personal::TopKResponse>(&Stub::TopK, request);
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).query(), 77u);
  ASSERT_EQ(response.results(0).items_size(), 2);
  EXPECT_FALSE(response.results(0).items(0).drawn());
  EXPECT_TRUE(response.results(0).items(1).drawn());
  EXPECT_EQ(response.results(0).items(1).probability(), 0.25);
  EXPECT_THAT(server_.personal.seen().last_query.users, ElementsAre(number_of_text("ada")));
  EXPECT_THAT(server_.personal.seen().last_query.items, ElementsAre(5u));
  request.clear_users();
  call<personal::TopKResponse>(&Stub::TopK, request, grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GrpcPersonalTest, ObservesAndForgets) {
  personal::ObserveRequest request;
  request.set_model("movies");
  auto* const observation = request.add_observations();
  observation->set_user_text("ada");
  observation->set_item(3);
  observation->set_value(4.5);
  call<personal::ObserveResponse>(&Stub::Observe, request, grpc::StatusCode::INVALID_ARGUMENT);  // it has no id
  observation->set_id_number(9);
  observation->set_query(77);
  call<personal::ObserveResponse>(&Stub::Observe, request);
  ASSERT_EQ(server_.personal.seen().observations.size(), 1u);
  EXPECT_EQ(server_.personal.seen().observations[0].user, number_of_text("ada"));
  EXPECT_EQ(server_.personal.seen().observations[0].id, 9u);
  EXPECT_EQ(server_.personal.seen().observations[0].query, 77u);
  personal::ForgetRequest forget;
  forget.set_model("movies");
  forget.add_users()->set_number(7);
  call<personal::ForgetResponse>(&Stub::Forget, forget);
  EXPECT_THAT(server_.personal.seen().forgotten, ElementsAre(7u));
  forget.add_users();
  call<personal::ForgetResponse>(&Stub::Forget, forget, grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace foliot
