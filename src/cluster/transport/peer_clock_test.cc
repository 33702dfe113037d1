#include "cluster/transport/peer_clock.h"

#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

class NoSession : public ConnectionHandler, public ConnectionDriver {
 public:
  Result<std::unique_ptr<Session>> on_open(Connection&, Role, TimePoint) override {
    return Status::unavailable("no session");
  }
  void on_no_greeting(const std::string&, const Status&) override {}
  void on_unsent(Connection&) override {}
};

TEST(PeerClockTest, PingsUntilItKnowsAndThenNowAndThen) {
  NoSession none;
  Connection connection({}, "peer", none, none);
  connection.sent(connection.unsent_bytes());
  PeerClock clock(connection);
  clock.start(at_us(0));
  for (uint32_t i = 0; i < ClockOffset::kWindow; ++i) {
    EXPECT_FALSE(clock.ready());
    EXPECT_GT(connection.unsent_bytes(), 0u);
    connection.sent(connection.unsent_bytes());
    ASSERT_TRUE(clock.on_pong({at_us(i * 10), at_us(i * 10 + 1005)}, at_us((i + 1) * 10)).ok());
  }
  EXPECT_TRUE(clock.ready());
  EXPECT_EQ(clock.offset().offset(), Duration::milliseconds(1));
  EXPECT_EQ(connection.unsent_bytes(), 0u);
  clock.keep(clock.next_keep() - Duration::nanoseconds(1));
  EXPECT_EQ(connection.unsent_bytes(), 0u);
  clock.keep(clock.next_keep());
  EXPECT_GT(connection.unsent_bytes(), 0u);
}

TEST(PeerClockTest, HangsUpOnASilentServer) {
  NoSession none;
  Connection connection({}, "peer", none, none);
  PeerClock clock(connection);
  clock.start(at_us(0));
  EXPECT_EQ(clock.next_keep(), TimePoint() + PeerClock::kSilenceMax);
  clock.keep(clock.next_keep() - Duration::nanoseconds(1));
  EXPECT_TRUE(connection.check().ok());
  clock.keep(clock.next_keep());
  EXPECT_NE(connection.check().message().find("no PONG for 2 s"), std::string::npos);

  Connection slow({}, "peer", none, none);
  PeerClock patient(slow, Duration::seconds(60));
  patient.start(at_us(0));
  EXPECT_EQ(patient.next_keep(), TimePoint() + Duration::seconds(60));
  patient.keep(patient.next_keep());
  EXPECT_NE(slow.check().message().find("no PONG for 60 s"), std::string::npos);
}

TEST(PeerClockTest, RefusesAnAnswerToNothing) {
  NoSession none;
  Connection connection({}, "peer", none, none);
  PeerClock clock(connection);
  EXPECT_FALSE(clock.on_pong({at_us(0), at_us(0)}, at_us(1)).ok());
  clock.start(at_us(5));
  EXPECT_FALSE(clock.on_pong({at_us(4), at_us(0)}, at_us(6)).ok());
}

}  // namespace
}  // namespace foliot
