#include "cluster/sessions/user_shards.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

// One model with one replica; calls are carried out at once.
class AnsweringStore : public ShardStore {
 public:
  std::vector<std::string> models() const override { return {"m"}; }
  size_t replicas(const std::string&) const override { return 1; }
  Result<std::vector<UserDigest>> digests(const std::string&, size_t&, size_t) override {
    return std::vector<UserDigest>();
  }
  Result<UserDigest> digest(const std::string&, uint64_t user) override { return UserDigest{.user = user}; }
  Result<WireBytes> copy(const std::string&, uint64_t) override { return WireBytes(); }
  void merge(const std::string&, std::span<const std::byte>, std::function<void(HomeOutcome)> done) override {
    done(HomeOutcome::kDone);
  }
  void drop(const std::string&, const UserDigest&, std::function<void()> done) override { done(); }
  void execute(const ShardCall&, std::function<void(Executed)> done) override { done({}); }
};

class RecordingPeers : public ShardPeers {
 public:
  bool is_connected(const std::string&) const override { return true; }
  void send(const std::string&, const HomeCall& call) override {
    calls.push_back({.id = call.id, .kind = call.kind, .user = call.user});
  }
  void reply(uint64_t, const HomeReply&) override {}

  struct Sent {
    uint64_t id = 0;
    HomeCallKind kind = HomeCallKind::kCall;
    uint64_t user = 0;
  };
  std::vector<Sent> calls;
};

class UserShardsTest : public testing::Test {
 protected:
  UserShardsTest() {
    shards_.set_homes(kHomes, at(0));
    shards_.tick(at(0));
    peers_.calls.clear();  // what is handed over, of which there is nothing
  }
  // Users whose home is this front end.
  uint64_t next_own_user() {
    do ++last_user_;
    while (HomeView(kHomes).homes_of(last_user_, 1).front() != "a");
    return last_user_;
  }
  // Of a change; whether it was answered at once.
  bool calls(uint64_t user) {
    answered_.reset();
    const auto done = [this](ShardResult result) { answered_ = result.end; };
    shards_.call({.model = "m", .user = user, .changes = true}, done, at(1));
    return answered_ == ShardResult::End::kAnswered;
  }

  const Homes kHomes{.epoch = 1, .homes = {{.name = "a"}, {.name = "b"}}};
  AnsweringStore store_;
  RecordingPeers peers_;
  UserShards shards_{{.name = "a"}, store_, peers_};
  uint64_t last_user_ = 0;
  std::optional<ShardResult::End> answered_;
};

TEST_F(UserShardsTest, AHomeAsksOnceForAUserUntilTheOthersHaveHandedOver) {
  const uint64_t user = next_own_user();
  EXPECT_FALSE(calls(user));
  ASSERT_EQ(peers_.calls.size(), 1u);
  EXPECT_EQ(peers_.calls[0].kind, HomeCallKind::kPull);
  EXPECT_EQ(peers_.calls[0].user, user);
  shards_.on_reply({.id = peers_.calls[0].id}, at(2));
  EXPECT_EQ(answered_, ShardResult::End::kAnswered);

  EXPECT_TRUE(calls(user)) << "it is known by now";
  EXPECT_EQ(peers_.calls.size(), 1u);
  EXPECT_FALSE(calls(next_own_user()));
  ASSERT_EQ(peers_.calls.size(), 2u);
  EXPECT_EQ(peers_.calls[1].kind, HomeCallKind::kPull);
}

// The other front end has not received the new homes yet: what is here may be an old copy, of a user that was
// forgotten.
TEST_F(UserShardsTest, JustAfterHomesWereNamedAReadWaitsForTheOthers) {
  const ShardCall read{.model = "m", .user = next_own_user(), .deadline = at(10'000)};
  shards_.call(
      read, [this](ShardResult result) { answered_ = result.end; }, at(1));
  ASSERT_EQ(peers_.calls.size(), 1u);
  shards_.on_reply({.id = peers_.calls[0].id, .outcome = HomeOutcome::kStale}, at(2));
  EXPECT_EQ(answered_, std::nullopt);
  shards_.tick(at(20));
  ASSERT_EQ(peers_.calls.size(), 2u) << "it is asked again";
  shards_.on_reply({.id = peers_.calls[1].id}, at(21));
  EXPECT_EQ(answered_, ShardResult::End::kAnswered);
}

TEST_F(UserShardsTest, LaterAReadIsAnsweredFromWhatIsThere) {
  const ShardCall read{.model = "m", .user = next_own_user(), .deadline = at(10'000)};
  shards_.call(
      read, [this](ShardResult result) { answered_ = result.end; }, at(1500));
  ASSERT_EQ(peers_.calls.size(), 1u);
  shards_.on_reply({.id = peers_.calls[0].id, .outcome = HomeOutcome::kStale}, at(1501));
  EXPECT_EQ(answered_, ShardResult::End::kAnswered);
}

TEST_F(UserShardsTest, AHomeAsksNoneThatHasHandedOver) {
  shards_.on_call(1, {.id = 1, .epoch = 1, .kind = HomeCallKind::kDone, .caller = "b"}, at(1));
  EXPECT_TRUE(calls(next_own_user()));
  EXPECT_TRUE(peers_.calls.empty());
}

}  // namespace
}  // namespace foliot
