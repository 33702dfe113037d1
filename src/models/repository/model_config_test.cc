#include "models/repository/model_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelConfigTest : public ::testing::Test {
 protected:
  Result<ModelConfig> read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_model_config(file_, ModelConfig());
  }
  void expect_error(const std::string& text, const std::string& line, const std::string& said) {
    const auto config = read(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(config.status().message(), HasSubstr(file_.string() + ":" + line));
    EXPECT_THAT(config.status().message(), HasSubstr(said));
  }
  // Tests run at the same time.
  const std::filesystem::path file_ =
      std::filesystem::path(::testing::TempDir()) /
      fmt::format("{}_model.toml", ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ModelConfigTest, ReadsAllKeys) {
  const auto config = read(
      "name = \"bert\"\ndefault_slo = \"50ms\"\nweight = 2.5\nbatch_delay = \"5ms\"\ncache = true\nbatch_sizes = [1, "
      "4]\nbatch_dimension = "
      "\"n\"\n"
      "precision = \"bfloat16\"\n"
      "[buckets]\nsequence = [32, 64]\n");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->name, "bert");
  EXPECT_EQ(config->default_slo, Duration::milliseconds(50));
  EXPECT_EQ(config->weight, 2.5);
  EXPECT_EQ(config->batch_delay, Duration::milliseconds(5));
  EXPECT_TRUE(config->cache);
  EXPECT_THAT(config->compile.batch_sizes, ElementsAre(1, 4));
  EXPECT_EQ(config->compile.batch_dimensions, std::vector<std::string>{"n"});
  EXPECT_EQ(config->compile.precision, Precision::kBfloat16);
  EXPECT_THAT(config->compile.buckets.at("sequence"), ElementsAre(32, 64));
}

TEST_F(ModelConfigTest, ABatchDelayMayBeLeftToThePolicy) {
  const auto config = read("batch_delay = \"auto\"");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->batch_delay, std::nullopt);
}

TEST_F(ModelConfigTest, ABatchMayHaveSeveralNames) {
  const auto config = read("batch_dimension = [\"s10\", \"s86\"]");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_THAT(config->compile.batch_dimensions, ElementsAre("s10", "s86"));
  ModelConfig defaults;
  defaults.compile.batch_dimensions = {"n", "m"};
  std::ofstream(file_) << "batch_dimension = \"s\"";
  const auto replaced = read_model_config(file_, defaults);
  ASSERT_TRUE(replaced.ok()) << replaced.status().message();
  EXPECT_THAT(replaced->compile.batch_dimensions, ElementsAre("s"));
  expect_error("batch_dimension = []", "1", "must be a text or a list of texts, not []");
  expect_error("batch_dimension = [\"a\", 1]", "1", "must be a text or a list of texts, not ['a', 1]");
}

TEST_F(ModelConfigTest, ReadsAContainer) {
  const auto config = read(
      "[container]\npython = \"/usr/bin/python3\"\nreplicas = 3\nbatch_size_max = 8\ncores = \"2,4-5\"\nmemory = "
      "\"1GiB\"\n"
      "network = true\ngpus = [1, 0]\nreadable = [\"/data\", \"/more\"]\ntrust_pickle = true\nstart_timeout = \"5s\"\n"
      "[container.environment]\nA = \"1\"\nB = \"\"\n");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const ContainerConfig wanted{.python = "/usr/bin/python3",
                               .replicas = 3,
                               .batch_size_max = 8,
                               .cores = {2, 4, 5},
                               .memory_bytes = uint64_t{1} << 30,
                               .network = true,
                               .gpus = {0, 1},
                               .readable = {"/data", "/more"},
                               .trust_pickle = true,
                               .start_timeout = Duration::seconds(5),
                               .environment = {{"A", "1"}, {"B", ""}}};
  EXPECT_EQ(config->container, wanted);
}

TEST_F(ModelConfigTest, NamesWhatIsWrongWithAContainer) {
  const std::string table = "[container]\n";
  expect_error("container = 1", "1", "must be a table");
  expect_error(table + "pyhton = \"x\"", "2",
               "unknown key 'pyhton'; known here are batch_size_max, compile, cores, disk, environment");
  expect_error(table + "python = \"bin/python\"", "2", "or a path that begins with '/', not 'bin/python'");
  expect_error(table + "replicas = 65", "2", "from 1 to 64, not 65");
  expect_error(table + "replicas = 0", "2", "from 1 to 64, not 0");
  expect_error(table + "batch_size_max = 100000", "2", "from 1 to 256, not 100000");
  expect_error(table + "cores = 2", "2", "must be a text, not 2");
  expect_error(table + "cores = \"4-\"", "2", "a list of cores in quotes, e.g. \"4-7\"");
  expect_error(table + "memory = 5", "2", "must be a size in quotes, e.g. \"16MiB\", not 5");
  expect_error(table + "network = \"no\"", "2", "true or false, not 'no'");
  expect_error(table + "gpus = 0", "2", "'gpus' must be a list of whole numbers from 0 to 127, not 0");
  expect_error(table + "gpus = [128]", "2", "from 0 to 127, not [128]");
  expect_error(table + "gpus = [1, 0, 1]", "2", "'gpus' must have each GPU once, not 1 twice");
  expect_error(table + "environment = {CUDA_VISIBLE_DEVICES = \"0\"}", "1", "give 'gpus' in [container]");
  expect_error(table + "readable = [\"data\"]", "2", "begin with '/', not ['data']");
  expect_error(table + "start_timeout = \"0s\"", "2", "above 0, not '0s'");
  expect_error(table + "[container.environment]\nA = 1", "3", "'A' must be a text, not 1");
  expect_error(table + "[container.environment]\n\"A=B\" = \"1\"", "3", "without '='");
}

TEST_F(ModelConfigTest, LiesBesideTheModelOrItsVersion) {
  EXPECT_EQ(config_file_of("models/bert/model.onnx"), "models/bert/model.toml");
  EXPECT_EQ(config_file_of("models/bert/12/model.onnx"), "models/bert/model.toml");
  EXPECT_EQ(config_file_of("model.onnx"), "model.toml");
}

TEST_F(ModelConfigTest, WithoutAFileTheDefaultsHold) {
  ModelConfig defaults;
  defaults.default_slo = Duration::seconds(1);
  const auto config = read_model_config(file_.parent_path() / "absent.toml", defaults);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->default_slo, Duration::seconds(1));
}

TEST_F(ModelConfigTest, ErrorsNameFileLineAndKey) {
  expect_error("\nslo = 1", "2", "unknown key 'slo'");
  expect_error("default_slo = 50", "1", "\"50ms\"");
  expect_error("default_slo = \"0ms\"", "1", "above 0, not '0ms'");
  expect_error("default_slo = \"soon\"", "1", "not a duration");
  expect_error("weight = 0", "1", "above 0, not 0");
  expect_error("batch_delay = \"11s\"", "1", "at most 10s");
  expect_error("batch_delay = \"-1ms\"", "1", "batch_delay");
  expect_error("batch_delay = \"soon\"", "1", "\"5ms\", or \"auto\", not 'soon'");
  expect_error("batch_delay = 5", "1", "\"5ms\", or \"auto\", not 5");
  expect_error("cache = \"yes\"", "1", "true or false, not 'yes'");
  expect_error("weight = \"two\"", "1", "must be a number, not 'two'");
  expect_error("batch_sizes = [4, 1]", "1", "ascending order, not [4, 1]");
  expect_error("batch_sizes = [0]", "1", "from 1 to 64, in ascending order, not [0]");
  expect_error("batch_sizes = [1000]", "1", "from 1 to 64, in ascending order, not [1000]");
  expect_error("batch_sizes = []", "1", "must be a list of whole numbers");
  expect_error("[buckets]\na = [1, 2]\nb = [1]", "3",
               "'b' must have 2 entries, as 'a' has, since bucket i takes entry i of each list, not [1]");
  expect_error("precision = \"float16\"", "1", "or \"bfloat16\", not 'float16'");
  expect_error("buckets = 3", "1", "must be a table: [buckets], not 3");
  expect_error("a = [", "1", "");
}

}  // namespace
}  // namespace foliot
