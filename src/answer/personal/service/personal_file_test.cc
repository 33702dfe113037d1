#include "answer/personal/service/personal_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "answer/personal/items/test_items.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PersonalFileTest : public ::testing::Test {
 protected:
  PersonalSpec read(const std::string& text) {
    const std::filesystem::path model = folder_.path / "movies";
    std::filesystem::create_directories(model);
    std::ofstream(model / "personal.toml") << text;
    return read_personal(model);
  }
  std::string error(const std::string& text) { return read(text).status.message(); }

  TestFolder folder_{"personal_file"};
};

TEST_F(PersonalFileTest, AnEmptyFileIsEnough) {
  const PersonalSpec spec = read("");
  EXPECT_TRUE(spec.status.ok()) << spec.status.message();
  EXPECT_EQ(spec.name, "movies");
  EXPECT_EQ(spec.options.exploration.kind, ExplorationKind::kThompson);
  EXPECT_TRUE(spec.options.table.prior_is_mean);
  EXPECT_FALSE(spec.default_slo);
  EXPECT_EQ(spec.replicas, 2u);
}

TEST_F(PersonalFileTest, ReplicasAreOneOrTwo) {
  EXPECT_EQ(read("replicas = 1").replicas, 1u);
  EXPECT_THAT(error("replicas = 3"), HasSubstr("replicas"));
  EXPECT_THAT(error("replicas = 0"), HasSubstr("replicas"));
}

TEST_F(PersonalFileTest, ReadsEverything) {
  const PersonalSpec spec = read(R"(
features = "items"
prior = "zero"
lambda = 2.5
durability = "async"
default_slo = "20ms"
replicas = 1
[exploration]
name = "linucb"
epsilon = 0.1
alpha = 0.25
deviation = 0.75
pool = 0.02
[limits]
users = 10
observations_per_user = 20
value_min = 1
value_max = 5
factors = 3
observations_per_snapshot = 40
snapshot_after = "2h"
lists = "1MiB"
[retrain]
loss_max = 2
observations_max = 1000
on_drift = true
every = "24h"
after_observations = 500
command = ["train", "{folder}"]
time_limit = "10m"
)");
  ASSERT_TRUE(spec.status.ok()) << spec.status.message();
  const PersonalModel::Options& options = spec.options;
  EXPECT_FALSE(options.table.prior_is_mean);
  EXPECT_EQ(options.table.lambda, 2.5F);
  EXPECT_TRUE(options.durability_is_async);
  EXPECT_EQ(spec.default_slo, Duration::milliseconds(20));
  EXPECT_EQ(options.exploration.kind, ExplorationKind::kLinucb);
  EXPECT_EQ(options.exploration.epsilon, 0.1);
  EXPECT_EQ(options.exploration.alpha, 0.25F);
  EXPECT_EQ(options.exploration.deviation, 0.75F);
  EXPECT_EQ(options.exploration.pool, 0.02);
  EXPECT_EQ(options.users_max, 10U);
  EXPECT_EQ(options.observations_per_user_max, 20U);
  EXPECT_EQ(options.value_min, 1);
  EXPECT_EQ(options.value_max, 5);
  EXPECT_EQ(options.table.factors_max, 3U);
  EXPECT_EQ(options.observations_per_snapshot, 40U);
  EXPECT_EQ(options.snapshot_after, Duration::seconds(7200));
  EXPECT_EQ(options.lists_bytes_max, uint64_t{1} << 20);
  EXPECT_EQ(options.retrain.loss_max, 2);
  EXPECT_EQ(options.retrain.observations_max, 1000U);
  EXPECT_TRUE(spec.retrain.on_drift);
  EXPECT_EQ(spec.retrain.every, Duration::seconds(24 * 3600));
  EXPECT_EQ(spec.retrain.after_observations, 500U);
  EXPECT_EQ(spec.retrain.command, (std::vector<std::string>{"train", "{folder}"}));
  EXPECT_EQ(spec.retrain.time_limit, Duration::seconds(600));
  EXPECT_FALSE(read("").retrain.any());
}

TEST_F(PersonalFileTest, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(error("\nlambda = 0"), HasSubstr("personal.toml:2: "));
  EXPECT_THAT(error("lambda = -1"), HasSubstr("lambda"));
  EXPECT_THAT(error("prior = \"median\""), HasSubstr("is \"median\": must be \"mean\" or \"zero\""));
  EXPECT_THAT(error("durability = \"memory\""), HasSubstr("must be \"disk\" or \"async\""));
  EXPECT_THAT(error("[limits]\ninputs = \"1MiB\""), HasSubstr("is of features that a model computes"));
  EXPECT_THAT(error("features_output = \"y\""), HasSubstr("features_output"));
  EXPECT_THAT(error("[exploration]\nname = \"ucb\""), HasSubstr("must be greedy, epsilon, linucb or thompson"));
  EXPECT_THAT(error("[exploration]\npool = 2"), HasSubstr("personal.toml:2: "));
  EXPECT_THAT(error("[limits]\nvalue_min = 5\nvalue_max = 5"), HasSubstr("must be below value_max, 5"));
  EXPECT_THAT(error("[limits]\nusers = 0"), HasSubstr("users"));
  EXPECT_THAT(error("[limits]\nsnapshot_after = \"59s\""), HasSubstr("is 59.000 s: must be 1m or more"));
  EXPECT_THAT(error("[limits]\nobservations_per_user = 20001"), HasSubstr("must be a whole number from 1 to 20000"));
  EXPECT_THAT(error("[retrain]\nevery = \"0s\""), HasSubstr("'every' is 0 us: must be 60.000 s or more"));
  EXPECT_THAT(error("[retrain]\nafter_observations = 0"), HasSubstr("must be a whole number from 1 to"));
  EXPECT_THAT(error("[retrain]\non_drift = true\ntime_limit = \"0s\""), HasSubstr("time_limit"));
  EXPECT_THAT(error("[retrain]\non_drift = true\ncommand = []"), HasSubstr("must be a text or a list of texts"));
  EXPECT_THAT(error("[retrain]\ncommand = \"train\""),
              HasSubstr("is never used: say when, by on_drift, every, after_observations"));
  EXPECT_THAT(error("features = \"encoder\"\n[retrain]\non_drift = true"), HasSubstr("train that one"));
  EXPECT_THAT(error("colour = 1"), HasSubstr("colour"));
}

TEST_F(PersonalFileTest, MemoryOfUsersIsDividedBetweenThemAndTheStore) {
  EXPECT_EQ(read("").store_bytes, 0u);
  EXPECT_EQ(read("").options.users_bytes_max, 0u) << "all are in memory";
  const PersonalSpec spec = read("[limits]\nusers_memory = \"64MiB\"");
  EXPECT_TRUE(spec.status.ok()) << spec.status.message();
  EXPECT_EQ(spec.store_bytes, 16u << 20);
  EXPECT_EQ(spec.options.users_bytes_max, 48u << 20);
  const PersonalSpec large = read("[limits]\nusers_memory = \"16GiB\"");
  EXPECT_EQ(large.store_bytes, 1u << 30);
  EXPECT_EQ(large.options.users_bytes_max, uint64_t{15} << 30);
  EXPECT_THAT(error("[limits]\nusers_memory = \"31MiB\""),
              AllOf(HasSubstr("personal.toml:2: "), HasSubstr("32505856 bytes: must be 32MiB or more")));
}

TEST_F(PersonalFileTest, HasNoOtherModelBeside) {
  std::filesystem::create_directories(folder_.path / "movies");
  std::ofstream(folder_.path / "movies" / "model.onnx") << "";
  EXPECT_THAT(error(""), HasSubstr("has model.onnx and personal.toml"));
}

TEST_F(PersonalFileTest, ScansInTheOrderOfNames) {
  for (const char* name : {"b", "a", ".hidden", "other"}) {
    std::filesystem::create_directories(folder_.path / name);
    if (std::string_view(name) != "other") std::ofstream(folder_.path / name / "personal.toml") << "";
  }
  const auto specs = scan_personal(folder_.path);
  ASSERT_TRUE(specs.ok());
  ASSERT_EQ(specs->size(), 2U);
  EXPECT_EQ((*specs)[0].name, "a");
  EXPECT_EQ((*specs)[1].name, "b");
}

TEST_F(PersonalFileTest, TheHighestVersionIsTheNewest) {
  EXPECT_THAT(newest_version(folder_.path).status().message(), HasSubstr("has no version"));
  for (const char* name : {"9", "10", "latest", "11x"}) std::filesystem::create_directories(folder_.path / name);
  EXPECT_EQ(newest_version(folder_.path).value(), folder_.path / "10");
}

}  // namespace
}  // namespace foliot
