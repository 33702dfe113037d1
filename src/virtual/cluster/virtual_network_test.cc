// Links in virtual time: bytes stay in order however they are cut, and what goes wrong with
// a link or a process is seen by its peers as over TCP.
#include "virtual/cluster/virtual_network.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cluster/transport/codec.h"

namespace foliot {
namespace {

constexpr auto ms = [](int64_t n) { return Duration::milliseconds(n); };

// Notes the pings that it gets, by their numbers, and how its links end.
class Side : public LinkHandler {
 public:
  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role /*peer*/, TimePoint /*now*/) override {
    current = &connection;
    ++opened;
    return std::unique_ptr<Session>(std::make_unique<PingSession>(*this));
  }
  void on_no_greeting(const std::string& /*peer*/, const Status& reason) override { refused = reason.message(); }
  TimePoint on_turn_end(TimePoint /*now*/) override { return TimePoint::infinite_future(); }

  Connection* current = nullptr;
  int opened = 0;
  std::vector<int64_t> pings;
  std::string closed;
  std::string refused;

 private:
  class PingSession : public Session {
   public:
    explicit PingSession(Side& side) : side_(side) {}
    Status on_frame(const Frame& frame, TimePoint /*now*/) override {
      Ping ping;
      if (frame.type != MessageType::kPing) return Status::unavailable("a goodbye");
      FOLIOT_RETURN_IF_ERROR(decode(frame, ping));
      side_.pings.push_back(ping.sent.nanoseconds());
      return Status();
    }
    void on_close(const Status& reason, TimePoint /*now*/) override {
      side_.current = nullptr;
      side_.closed = reason.message();
    }

   private:
    Side& side_;
  };
};

class VirtualNetworkTest : public ::testing::Test {
 protected:
  VirtualNetworkTest() {
    server_links_.listen(1);
    EXPECT_TRUE(client_links_.keep("server:1").ok());
    pass(ms(20));
    EXPECT_NE(client_.current, nullptr);
  }
  void pass(Duration time) { loop_.run_until(loop_.now() + time); }
  void send(int64_t count) {
    for (int64_t i = 0; i < count; ++i) client_.current->send(Ping{TimePoint::from_nanoseconds(next_++)});
    client_links_.wake();
  }

  VirtualLoop loop_;
  VirtualNetwork network_{loop_, {}, 1};
  const HostId a_ = network_.add_host("client");
  const HostId b_ = network_.add_host("server");
  Side client_;
  Side server_;
  VirtualLinkLoop client_links_{network_, a_, {}, {.role = Role::kClient}, client_};
  VirtualLinkLoop server_links_{network_, b_, {}, {.role = Role::kController}, server_};
  int64_t next_ = 0;
};

TEST_F(VirtualNetworkTest, BytesArriveInOrderHoweverTheyAreCut) {
  for (int i = 0; i < 200; ++i) {
    send(20);
    pass(Duration::microseconds(50));
  }
  pass(ms(10));
  ASSERT_EQ(server_.pings.size(), 4000u);
  for (int64_t i = 0; i < 4000; ++i) ASSERT_EQ(server_.pings[static_cast<size_t>(i)], i);
}

TEST_F(VirtualNetworkTest, AResetIsSeenByBothEndsAndThePeerIsFoundAgain) {
  send(1000);
  pass(Duration::microseconds(1));
  ASSERT_TRUE(network_.reset_some_link());
  pass(ms(4000));
  EXPECT_LT(server_.pings.size(), 1000u) << "what was in flight is lost";
  EXPECT_FALSE(server_.closed.empty());
  EXPECT_FALSE(client_.closed.empty());
  EXPECT_EQ(client_.opened, 2);
  ASSERT_NE(client_.current, nullptr);
}

TEST_F(VirtualNetworkTest, WhatIsBlockedArrivesLater) {
  network_.block(a_, b_);
  send(3);
  pass(ms(500));
  EXPECT_TRUE(server_.pings.empty());
  network_.unblock(a_, b_);
  pass(ms(1));
  EXPECT_EQ(server_.pings.size(), 3u);
}

TEST_F(VirtualNetworkTest, AProcessThatStandsStillReadsWhenItGoesOn) {
  server_links_.freeze();
  send(3);
  pass(ms(500));
  EXPECT_TRUE(server_.pings.empty());
  server_links_.resume();
  pass(ms(1));
  EXPECT_EQ(server_.pings.size(), 3u);
}

TEST_F(VirtualNetworkTest, AnEndIsSeenUnlessTheMachineCrashes) {
  server_links_.kill(false);
  pass(ms(100));
  EXPECT_FALSE(client_.closed.empty());
  EXPECT_EQ(client_.refused, "cannot connect: connection refused");
}

TEST_F(VirtualNetworkTest, ACrashIsSeenBySilence) {
  server_links_.kill(true);
  send(1);
  pass(ms(2000));
  EXPECT_TRUE(client_.closed.empty());
  network_.set_up(b_, true);  // another process does not know of the link
  send(1);
  pass(ms(100));
  EXPECT_EQ(client_.closed, "connection reset by peer");
}

}  // namespace
}  // namespace foliot
