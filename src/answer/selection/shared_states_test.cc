// The contract of SharedStates, for each of its implementations.
#include "answer/selection/shared_states.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "answer/selection/fake_shared_states.h"
#include "answer/selection/redis_states.h"
#include "foundation/net/test_redis_server.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A store, and what it needs to run.
class Store {
 public:
  virtual ~Store() = default;
  virtual SharedStates& states() = 0;
};

class FakeStore final : public Store {
 public:
  SharedStates& states() override { return states_; }

 private:
  FakeSharedStates states_;
};

class RedisStore final : public Store {
 public:
  SharedStates& states() override { return states_; }
  TestRedisServer& server() { return server_; }

 private:
  TestRedisServer server_;
  RedisStates states_{server_.address()};
};

struct StoreCase {
  std::string name;
  std::function<std::unique_ptr<Store>()> make;
};

class SharedStatesContract : public testing::TestWithParam<StoreCase> {
 protected:
  SharedStates& states() { return store_->states(); }
  std::vector<SharedState> read(uint64_t after = 0, const std::string& application = "app") {
    auto states = store_->states().read(application, after);
    EXPECT_TRUE(states.ok()) << states.status().message();
    return states.ok() ? *states : std::vector<SharedState>();
  }
  // As the writer's next batch.
  std::vector<SharedStates::Written> write(std::vector<SharedState> writes, uint64_t contexts_max = 100,
                                           const std::string& writer = "one") {
    return send({++number_, contexts_max, std::move(writes)}, writer);
  }
  std::vector<SharedStates::Written> send(const StateBatch& batch, const std::string& writer = "one") {
    auto written = store_->states().write("app", writer, batch);
    EXPECT_TRUE(written.ok()) << written.status().message();
    return written.ok() ? *written : std::vector<SharedStates::Written>(batch.writes.size());
  }

  std::unique_ptr<Store> store_ = GetParam().make();
  uint64_t number_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Stores, SharedStatesContract,
                         testing::Values(StoreCase{"Fake", [] { return std::make_unique<FakeStore>(); }},
                                         StoreCase{"Redis", [] { return std::make_unique<RedisStore>(); }}),
                         [](const auto& store) { return store.param.name; });

TEST_P(SharedStatesContract, ReadsWhatWasWrittenSince) {
  EXPECT_THAT(read(), IsEmpty());
  const std::string binary("a\0\xff\n", 4);
  const auto first = write({{"", 0, binary}, {"berlin", 0, "1"}});
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_FALSE(first[0].instead);
  EXPECT_LT(first[0].revision, first[1].revision);
  const auto all = read();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].context, "");
  EXPECT_EQ(all[0].bytes, binary);
  EXPECT_EQ(all[0].revision, first[0].revision);
  EXPECT_EQ(all[1].context, "berlin");
  write({{"", first[0].revision, "2"}});
  const auto later = read(first[1].revision);
  ASSERT_THAT(later, SizeIs(1));
  EXPECT_EQ(later[0].bytes, "2");
  EXPECT_THAT(read(later[0].revision), IsEmpty());
  EXPECT_THAT(read(0, "another"), IsEmpty());
}

TEST_P(SharedStatesContract, AWriteFromAnOldStateIsNotMade) {
  const auto first = write({{"", 0, "1"}});
  const auto second = write({{"", first[0].revision, "2"}, {"rome", 7, "x"}}, 100, "two");
  ASSERT_TRUE(second[1].instead);
  EXPECT_EQ(*second[1].instead, "");  // there is none
  EXPECT_EQ(second[1].revision, 0u);
  const auto late = write({{"", first[0].revision, "3"}});
  ASSERT_TRUE(late[0].instead);
  EXPECT_EQ(*late[0].instead, "2");
  EXPECT_EQ(late[0].revision, second[0].revision);
  EXPECT_EQ(read()[0].bytes, "2");
}

TEST_P(SharedStatesContract, ABatchThatIsSentAgainChangesNothing) {
  const StateBatch batch{.number = 1, .contexts_max = 100, .writes = {{"", 0, "1"}, {"rome", 5, "1"}}};
  const auto first = send(batch);
  const auto second = send({1, 100, {{"", first[0].revision, "2"}}}, "two");
  const auto again = send(batch);
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_EQ(again[0].revision, first[0].revision);
  EXPECT_FALSE(again[0].instead);
  EXPECT_EQ(again[1].instead, "");
  EXPECT_EQ(read()[0].revision, second[0].revision);
}

TEST_P(SharedStatesContract, TheContextsWrittenLongAgoGo) {
  write({{"", 0, "own"}, {"a", 0, "1"}, {"b", 0, "1"}});
  write({{"c", 0, "1"}}, 2);
  std::vector<std::string> contexts;
  for (const SharedState& state : read()) contexts.push_back(state.context);
  EXPECT_EQ(contexts, (std::vector<std::string>{"", "b", "c"}));
}

TEST_P(SharedStatesContract, OneReadIsBounded) {
  std::vector<SharedState> many;
  for (size_t i = 0; i <= SharedStates::kStatesMax; ++i) many.push_back({fmt::format("c{}", i), 0, "1"});
  write({many.begin(), many.end() - 1}, 10'000);
  write({many.back()}, 10'000);
  const auto first = read();
  ASSERT_THAT(first, SizeIs(SharedStates::kStatesMax));
  EXPECT_THAT(read(first.back().revision), SizeIs(1));
}

TEST(RedisStates, IsConnectedAgain) {
  auto store = std::make_unique<RedisStore>();
  SharedStates& states = store->states();
  ASSERT_TRUE(states.read("app", 0).ok());
  store->server().stop();
  const Status gone = states.read("app", 0).status();
  EXPECT_EQ(gone.code(), StatusCode::kUnavailable);
  EXPECT_THAT(gone.message(), HasSubstr("unix:"));
  EXPECT_FALSE(states.write("app", "one", {1, 10, {{"", 0, "1"}}}).ok());
  store->server().start();
  EXPECT_TRUE(states.read("app", 0).ok());
}

}  // namespace
}  // namespace foliot
