#include "cluster/transport/connection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace foliot {
namespace {

// One side: remembers what it receives.
class ConnectedSide : public ConnectionHandler, public ConnectionDriver {
 public:
  explicit ConnectedSide(Role role, ConnectionOptions options = {}, Standing standing = {})
      : own_standing(standing), role_(role) {
    options.role = role;
    connection.emplace(options, "peer", *this, *this);
  }

  Result<std::unique_ptr<Session>> on_open(Connection&, Role peer, TimePoint) override {
    if (peer == role_) return Status::invalid_argument("not another one");
    peer_role = peer;
    return std::unique_ptr<Session>(std::make_unique<Talk>(*this));
  }
  void on_no_greeting(const std::string&, const Status& reason) override { closed = reason; }
  Standing standing() const override { return own_standing; }
  void on_unsent(Connection&) override { ++unsent_calls; }

  // Carries all that this side has sent, in pieces of `piece` bytes, to the other.
  Status carry_to(ConnectedSide& other, size_t piece = SIZE_MAX) {
    while (connection->unsent_bytes() > 0) {
      const std::span<const std::byte> unsent = connection->unsent();
      const std::span<std::byte> space = other.connection->space();
      const size_t size = std::min({unsent.size(), space.size(), piece});
      std::copy_n(unsent.begin(), size, space.begin());
      connection->sent(size);
      FOLIOT_RETURN_IF_ERROR(other.connection->received(size, TimePoint()));
    }
    return Status();
  }

  Status receive(const WireBytes& bytes) {
    std::copy(bytes.begin(), bytes.end(), connection->space().begin());
    return connection->received(bytes.size(), TimePoint());
  }

  std::optional<Connection> connection;
  std::optional<Role> peer_role;
  std::vector<std::string> received;
  std::optional<Status> closed;
  int unsent_calls = 0;
  Standing own_standing{};

 private:
  class Talk : public Session {
   public:
    explicit Talk(ConnectedSide& side) : side_(side) {}
    Status on_frame(const Frame& frame, TimePoint) override {
      Goodbye goodbye;
      FOLIOT_RETURN_IF_ERROR(decode(frame, goodbye));
      side_.received.push_back(goodbye.reason);
      return Status();
    }
    void on_close(const Status& reason, TimePoint) override { side_.closed = reason; }

   private:
    ConnectedSide& side_;
  };
  Role role_;
};

WireBytes greeting(uint32_t magic, uint16_t version, uint8_t role, uint64_t epoch = 0) {
  WireBytes bytes;
  WireWriter writer(bytes);
  writer.put(magic);
  writer.put(version);
  writer.put(role);
  writer.put(uint8_t{0});
  writer.put(epoch);
  return bytes;
}
constexpr uint32_t kMagic = 0x544c4f46;

TEST(ConnectionTest, SendsAGreetingAndCarriesFramesHoweverTheyAreCut) {
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{1000}, SIZE_MAX}) {
    ConnectedSide worker(Role::kWorker);
    ConnectedSide controller(Role::kController);
    for (int i = 0; i < 50; ++i) worker.connection->send(Goodbye{std::string(static_cast<size_t>(i) * 50, 'x')});
    ASSERT_TRUE(worker.carry_to(controller, piece).ok());
    ASSERT_TRUE(controller.carry_to(worker, piece).ok());
    EXPECT_EQ(controller.peer_role, Role::kWorker);
    EXPECT_EQ(worker.peer_role, Role::kController);
    ASSERT_EQ(controller.received.size(), 50u);
    EXPECT_EQ(controller.received[49].size(), 49u * 50);
  }
}

TEST(ConnectionTest, GreetingsCarryTheStandingOfBothSides) {
  ConnectedSide controller(Role::kController, {}, {.epoch = 7, .stands_by = true});
  ConnectedSide worker(Role::kWorker, {}, {.epoch = 6});
  ASSERT_TRUE(worker.carry_to(controller).ok());
  ASSERT_TRUE(controller.carry_to(worker).ok());
  EXPECT_EQ(worker.connection->peer_standing().epoch, 7u);
  EXPECT_TRUE(worker.connection->peer_standing().stands_by);
  EXPECT_EQ(controller.connection->peer_standing().epoch, 6u);
  EXPECT_FALSE(controller.connection->peer_standing().stands_by);
}

TEST(ConnectionTest, AFrameMayBeLargerThanAnyRead) {
  ConnectedSide worker(Role::kWorker);
  ConnectedSide controller(Role::kController);
  ASSERT_TRUE(worker.carry_to(controller).ok());
  Registration registration;
  registration.page_counts.resize(1000, 1);
  registration.lane_counts.resize(1000, 1);
  registration.context_counts.resize(1000, 1);
  for (int i = 0; i < 20; ++i) worker.connection->send(registration);
  const Status status = worker.carry_to(controller, 100);  // the ConnectedSide understands only Goodbye
  EXPECT_NE(status.message().find("malformed REGISTRATION"), std::string::npos) << status.message();
}

TEST(ConnectionTest, NotifiesTheDriverOnceOfSomethingToSend) {
  ConnectedSide worker(Role::kWorker);
  ConnectedSide controller(Role::kController);
  ASSERT_TRUE(worker.carry_to(controller).ok());
  EXPECT_EQ(worker.unsent_calls, 0);
  worker.connection->send(Goodbye{"a"});
  worker.connection->send(Goodbye{"b"});
  EXPECT_EQ(worker.unsent_calls, 1);
}

TEST(ConnectionTest, RefusesOtherProtocolsAndVersions) {
  const auto refusal = [](const WireBytes& bytes) { return ConnectedSide(Role::kController).receive(bytes).message(); };
  WireBytes http;
  WireWriter(http).put(uint64_t{0x5448202f20544547});  // "GET / HT"
  EXPECT_NE(refusal(http).find("not Foliot's protocol"), std::string::npos);
  EXPECT_NE(refusal(greeting(kMagic, kWireVersion + 1, 1)).find(fmt::format("version {}", kWireVersion + 1)),
            std::string::npos);
  // Versions before 24 had a shorter greeting.
  WireBytes early = greeting(kMagic, 23, 1);
  early.resize(8);
  EXPECT_NE(refusal(early).find("version 23"), std::string::npos);
  EXPECT_NE(refusal(greeting(kMagic, kWireVersion, 17)).find("malformed greeting"), std::string::npos);
  EXPECT_NE(refusal(greeting(kMagic, kWireVersion, 1, UINT64_MAX)).find("malformed greeting"), std::string::npos);
  EXPECT_EQ(refusal(greeting(kMagic, kWireVersion, 0)), "not another one");
}

TEST(ConnectionTest, EndsAtBadFrames) {
  const auto after_greeting = [](uint32_t length, uint8_t type) {
    ConnectionOptions options;
    options.frame_bytes_max = 1000;
    ConnectedSide side(Role::kController, options);
    EXPECT_TRUE(side.receive(greeting(kMagic, kWireVersion, 1)).ok());
    WireBytes bytes;
    WireWriter(bytes).put(length);
    WireWriter(bytes).put(type);
    return side.receive(bytes).message();
  };
  EXPECT_NE(after_greeting(0, 0).find("a frame of 0 bytes"), std::string::npos);
  EXPECT_NE(after_greeting(1001, 0).find("a frame of 1001 bytes; allowed are 1 to 1000"), std::string::npos);
  EXPECT_NE(after_greeting(1, 200).find("unknown type 200"), std::string::npos);
  EXPECT_NE(after_greeting(1, 0).find("malformed GOODBYE"), std::string::npos);
}

TEST(ConnectionTest, APeerThatTakesNothingIsFound) {
  ConnectionOptions options;
  options.unsent_bytes_max = 500;
  ConnectedSide side(Role::kWorker, options);
  EXPECT_TRUE(side.connection->check().ok());
  side.connection->send(Goodbye{std::string(500, 'x')});
  EXPECT_EQ(side.connection->check().code(), StatusCode::kResourceExhausted);
}

TEST(ConnectionTest, ReportsWhyItCloses) {
  ConnectedSide worker(Role::kWorker);
  ConnectedSide controller(Role::kController);
  ASSERT_TRUE(worker.carry_to(controller).ok());
  ASSERT_TRUE(controller.carry_to(worker).ok());
  controller.connection->close(Status::invalid_argument("enough"), true, TimePoint());
  EXPECT_EQ(controller.closed->message(), "enough");
  ASSERT_TRUE(controller.carry_to(worker).ok());
  EXPECT_EQ(worker.received, std::vector<std::string>{"enough"});

  ConnectedSide silent(Role::kController);
  silent.connection->close(Status::unavailable("gone"), false, TimePoint());
  EXPECT_EQ(silent.closed->message(), "gone");
}

}  // namespace
}  // namespace foliot
