#include "node/tuning/worker_pool_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace foliot {
namespace {

using testing::ElementsAre;

class WorkerPoolFileTest : public testing::Test {
 protected:
  WorkerPoolFile read(const std::string& text) {
    std::ofstream(file_) << text;
    auto pools = read_worker_pool_file(file_, {.hourly_dollars = {{"cpu", 3.6}, {"fast", 7.2}, {"slow", 0}}});
    EXPECT_TRUE(pools.ok()) << pools.status().message();
    return std::move(pools).value();
  }
  const std::string file_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_foliot_worker_pools.toml";
};

TEST_F(WorkerPoolFileTest, KindsHaveCommandsOrStatefulSets) {
  const WorkerPoolFile pools = read(R"(
start_up = "5s"
hourly_budget = 36
[[kind]]
name = "cpu"
workers_least = 2
workers_most = 3
command = ["foliot", "worker", "models"]
[[kind]]
name = "fast"
stateful_set = "ml/workers"
[[kind]]
name = "slow"
stateful_set = "others"
)");
  EXPECT_EQ(pools.autoscaler.start_up, Duration::seconds(5));
  EXPECT_EQ(pools.autoscaler.budget, 10'000);
  EXPECT_EQ(pools.autoscaler.kinds.at("cpu").price, 1000);
  EXPECT_EQ(pools.autoscaler.kinds.at("cpu").least, 2u);
  EXPECT_EQ(pools.autoscaler.kinds.at("cpu").most, 3u);
  EXPECT_EQ(pools.autoscaler.kinds.at("fast").least, 1u);
  EXPECT_EQ(pools.autoscaler.kinds.at("fast").most, 8u);
  EXPECT_THAT(pools.processes.commands.at("cpu"), ElementsAre("foliot", "worker", "models"));
  EXPECT_EQ(pools.processes.commands.size(), 1u);
  EXPECT_EQ(pools.kubernetes.stateful_sets.at("fast").name_space, "ml");
  EXPECT_EQ(pools.kubernetes.stateful_sets.at("fast").name, "workers");
  EXPECT_EQ(pools.kubernetes.stateful_sets.at("slow").name_space, "default");
}

TEST_F(WorkerPoolFileTest, KindsAreNotComparedWithoutPrices) {
  const std::string one = "[[kind]]\nname = 'new'\nstateful_set = 'b'\n";
  EXPECT_EQ(read(one).autoscaler.kinds.size(), 1u) << "alone it is compared with nothing";
  for (const std::string& text : {"hourly_budget = 3\n" + one, one + "[[kind]]\nname = 'cpu'\nstateful_set = 'c'\n"}) {
    std::ofstream(file_) << text;
    const Status refused = read_worker_pool_file(file_, {.hourly_dollars = {{"cpu", 3.6}}}).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), testing::HasSubstr("kind 'new', which has no price"));
  }
}

TEST_F(WorkerPoolFileTest, AServerWithoutTlsNeedsNoToken) {
  const std::string kind = "[[kind]]\nname = 'a'\nstateful_set = 'b'\n";
  EXPECT_EQ(read(kind).kubernetes.token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
  const auto proxy = read(kind + "[kubernetes]\nserver = 'http://localhost:8001'\n").kubernetes;
  EXPECT_EQ(proxy.token_file, "");
  EXPECT_EQ(proxy.ca_file, "");
  const auto named = read(kind + "[kubernetes]\nserver = 'http://localhost:8001'\ntoken_file = 't'\n").kubernetes;
  EXPECT_EQ(named.token_file, "t");
}

TEST_F(WorkerPoolFileTest, CommandsFindTheControllerUnlessTheySayWhereItIs) {
  ProcessWorkerPoolOptions pools;
  pools.commands = {{"a", {"foliot", "worker", "models"}},
                    {"b", {"foliot", "worker", "models", "--controller", "far:1", "--data-listen=0.0.0.0:2"}}};
  add_worker_flags(pools, "0.0.0.0:0", 8100);
  EXPECT_THAT(pools.commands["a"], ElementsAre("foliot", "worker", "models", "--controller", "127.0.0.1:8100",
                                               "--data-listen", "127.0.0.1:0"));
  EXPECT_EQ(pools.commands["b"].size(), 6u);
  pools.commands = {{"a", {"foliot"}}};
  add_worker_flags(pools, "10.0.0.1:0", 8100);
  EXPECT_EQ(pools.commands["a"][2], "10.0.0.1:8100");
}

}  // namespace
}  // namespace foliot
