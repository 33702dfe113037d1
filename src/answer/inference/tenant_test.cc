#include "answer/inference/tenant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;

TimePoint after(double seconds) { return TimePoint() + Duration::seconds(100) + Duration::from_seconds(seconds); }

TEST(TenantTest, WithoutLimitsEveryCallIsAdmitted) {
  Tenant tenant("app");
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(tenant.enter(64, after(0)));
  EXPECT_EQ(tenant.statistics().admitted, 64'000u);
  EXPECT_EQ(tenant.statistics().in_flight, 64'000u);
}

TEST(TenantTest, LimitsTheRate) {
  Tenant tenant("app", {.requests_per_second = 4});
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(tenant.enter(1, after(0)));
  const auto refused = tenant.enter(1, after(0));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->http_status, 429u);
  EXPECT_EQ(refused->grpc_code, GrpcCode::kResourceExhausted);
  EXPECT_THAT(refused->message, HasSubstr("4 requests per second"));
  EXPECT_EQ(refused->retry_after, Duration::milliseconds(250));
  EXPECT_FALSE(tenant.enter(1, after(0.25)));
  EXPECT_TRUE(tenant.enter(1, after(0.25)));
  EXPECT_EQ(tenant.statistics().over_rate, 2u);
  int admitted = 0;  // an hour's rest is worth no more than a second's
  while (!tenant.enter(1, after(3600))) ++admitted;
  EXPECT_EQ(admitted, 4);
}

TEST(TenantTest, CountsAnswers) {
  Tenant tenant("app", {.weight = 3});
  EXPECT_EQ(tenant.weight(), 3u);
  EXPECT_EQ(tenant.id(), tenant_named("app"));
  tenant.count(Refusal::kNone);
  tenant.count(Refusal::kOverShare);
  tenant.count(Refusal::kLate);
  tenant.count(Refusal::kExpired);
  EXPECT_EQ(tenant.statistics().served, 1u);
  EXPECT_EQ(tenant.statistics().over_share, 1u);
  EXPECT_EQ(tenant.statistics().missed, 2u);
}

TEST(TenantTest, ALargeCallIsPaidForAfterwards) {
  Tenant tenant("app", {.requests_per_second = 2});
  EXPECT_FALSE(tenant.enter(10, after(0)));
  EXPECT_TRUE(tenant.enter(1, after(4)));
  EXPECT_FALSE(tenant.enter(1, after(4.5)));
}

TEST(TenantTest, LimitsWhatIsInFlight) {
  const auto tenant = std::make_shared<Tenant>("app", KeyLimits{.requests_in_flight = 3});
  EXPECT_FALSE(tenant->enter(2, after(0)));
  {
    EXPECT_FALSE(tenant->enter(1, after(0)));
    const TenantLease lease(tenant, 1);
    const auto refused = tenant->enter(1, after(0));
    ASSERT_TRUE(refused);
    EXPECT_THAT(refused->message, HasSubstr("3 requests in flight; 3 are"));
  }
  EXPECT_FALSE(tenant->enter(1, after(0)));
  tenant->set_limits({.requests_in_flight = 4});
  EXPECT_FALSE(tenant->enter(1, after(0)));
}

}  // namespace
}  // namespace foliot
