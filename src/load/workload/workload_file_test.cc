#include "load/workload/workload_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/workload/workload_arrivals.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kModel = "[[models]]\nprofile = 'resnet50'\n";

Result<ModelProfile> no_package(const std::string& path) { return Status::not_found("no package " + path); }

struct File {
  ProfileTable profiles;
  Workload workload;
};

Result<File> read(const std::string& text) {
  const toml::table table = toml::parse(text);
  TomlReader reader(table, "a.toml");
  File file;
  FOLIOT_ASSIGN_OR_RETURN(file.profiles, read_profiles(reader, no_package));
  FOLIOT_ASSIGN_OR_RETURN(file.workload, read_workload(reader, &file.profiles));
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return file;
}

WorkloadRun run_of(const std::string& text) {
  const toml::table table = toml::parse(text);
  TomlReader reader(table, "a.toml");
  WorkloadRun run;
  read_run(reader, run);
  EXPECT_TRUE(reader.finish().ok());
  return run;
}

std::string file_error(const std::string& text) { return read(text).status().message(); }

TEST(WorkloadFileTest, ReadsHowItIsPlayed) {
  const WorkloadRun run = run_of("seed = 7\nduration = '20s'\nwarm_up = '5s'\npreload = true\n");
  EXPECT_EQ(run.seed, 7u);
  EXPECT_EQ(run.duration, Duration::seconds(20));
  EXPECT_EQ(run.warm_up, Duration::seconds(5));
  EXPECT_TRUE(run.preload);
  const toml::table table = toml::parse("duration = '20s'\nwarm_up = '20s'\n");
  TomlReader reader(table, "a.toml");
  WorkloadRun wrong;
  read_run(reader, wrong);
  EXPECT_EQ(reader.finish().message(), "a.toml:2: 'warm_up' must be shorter than duration");
}

// A load generator has no profiles: the server knows its models.
TEST(WorkloadFileTest, WithoutProfilesANameIsEnough) {
  const toml::table table = toml::parse("[[models]]\nname = 'm'\n[[streams]]\nrate = 5\n[cluster]\ndevices = 2\n");
  TomlReader reader(table, "a.toml");
  reader.leave("cluster");
  const auto workload = read_workload(reader, nullptr);
  ASSERT_TRUE(workload.ok()) << workload.status().message();
  EXPECT_TRUE(reader.finish().ok());
  EXPECT_THAT(workload->model_names(), ElementsAre("m"));
}

TEST(WorkloadFileTest, ReadsModelsStreamsAndProfiles) {
  const auto file = read(R"(
[[profiles]]
name = "mine"
weights = "100MB"
load = "8ms"
batch_sizes = [1, 4]
exec = ["2ms", "5ms"]

[[models]]
name = "a"
profile = "mine"
count = 3
slo = "25ms"
weight = 2.5
batch_delay = "3ms"

[[models]]
profile = "resnet50"

[[streams]]
name = "bursty"
models = "a"
arrivals = "gamma"
coefficient_of_variation = 4
rate = 120
per_model = true
zipf = 1
popularity_seed = 7
start = "1s"
stop = "9s"

[[streams]]
models = ["a", "resnet50"]
concurrency = 16
think_time = "2ms"
best_effort = true

[[streams]]
activate_every = "1s"

[[streams]]
trace = {kind = "azure-like", functions = 50, rate = 10}
)");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelProfile* mine = file->profiles.find("mine");
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(mine->exec.at(1), Duration::milliseconds(5));
  EXPECT_NE(file->profiles.find("resnet50"), nullptr);
  const Workload& workload = file->workload;
  EXPECT_THAT(workload.model_names(), ElementsAre("a_0", "a_1", "a_2", "resnet50"));
  EXPECT_EQ(workload.groups[0].slo, Duration::milliseconds(25));
  EXPECT_EQ(workload.groups[0].weight, 2.5);
  EXPECT_EQ(workload.groups[0].batch_delay, Duration::milliseconds(3));
  EXPECT_FALSE(workload.groups[1].slo);
  ASSERT_EQ(workload.streams.size(), 4u);
  EXPECT_EQ(workload.streams[0].arrivals.kind, ArrivalKind::kGamma);
  EXPECT_EQ(workload.streams[0].arrivals.rate, 120);
  EXPECT_EQ(workload.streams[0].stop, Duration::seconds(9));
  EXPECT_TRUE(workload.streams[0].per_model);
  EXPECT_EQ(workload.streams[0].popularity_seed, 7u);
  EXPECT_EQ(workload.streams[1].concurrency, 16u);
  EXPECT_TRUE(workload.streams[1].best_effort);
  EXPECT_EQ(workload.streams[2].name, "stream 3");
  EXPECT_EQ(workload.streams[2].activate_every, Duration::seconds(1));
  ASSERT_NE(workload.streams[3].trace, nullptr);
  EXPECT_EQ(workload.streams[3].trace->functions(), 50u);
  EXPECT_TRUE(WorkloadArrivals::make(workload, 1).ok());
}

TEST(WorkloadFileTest, ErrorsNameFileLineAndKey) {
  const auto stream = [](const std::string& keys) {
    return file_error(std::string(kModel) + "[[streams]]\nname = 's'\n" + keys);
  };
  EXPECT_EQ(stream("rate = -5"), "a.toml:5: 'rate' must be above 0, not -5");
  EXPECT_THAT(stream("rat = 5"), HasSubstr("a.toml:5: unknown key 'rat'; known here are"));
  EXPECT_THAT(stream("spike_factor = 2"), HasSubstr("a.toml:5: unknown key 'spike_factor'"));  // of Poisson arrivals
  EXPECT_THAT(stream("arrivals = 'possion'"), HasSubstr("a.toml:5: 'arrivals' is none of poisson"));
  EXPECT_THAT(stream("models = 'x'"), HasSubstr("a.toml:3: stream 's': models 'x' do not exist"));
  EXPECT_THAT(stream("slo = '0s'"), HasSubstr("a.toml:5: 'slo' must be above 0"));
  EXPECT_THAT(stream("arrivals = 'replay'\ninstants = 'gone.txt'"), HasSubstr("a.toml:6: 'instants' are wrong"));
  EXPECT_THAT(stream("trace = {kind = 'x'}"), HasSubstr("'kind' must be azure-2019"));
  EXPECT_THAT(stream("trace = {kind = 'azure-2019', files = 'gone.csv'}"), HasSubstr("gone.csv"));
  EXPECT_THAT(stream("start = '3s'\nstop = '2s'"), HasSubstr("a.toml:3: stream 's': stop must come after start"));
  EXPECT_THAT(file_error(kModel), HasSubstr("[[streams]] is missing"));
  EXPECT_THAT(file_error("[[streams]]\n"), HasSubstr("[[models]] is missing"));
  EXPECT_THAT(file_error("[[models]]\nprofile = 'resnet51'"), HasSubstr("a.toml:2: 'profile' is none of densenet169"));
  EXPECT_THAT(file_error("[[models]]\ncount = 2"), HasSubstr("a.toml:1: needs a 'profile'"));
  EXPECT_THAT(file_error("[[models]]\nprofile = 'resnet50'\ncount = 0"),
              HasSubstr("a.toml:3: 'count' must be a whole"));
  EXPECT_THAT(file_error(std::string(kModel) + kModel),
              HasSubstr("a.toml:3: models 'resnet50': the name is given twice"));
  EXPECT_THAT(file_error("x = 1\n" + std::string(kModel) + "[[streams]]\n"), HasSubstr("a.toml:1: unknown key 'x'"));
}

TEST(WorkloadFileTest, ProfilesMustBeWhole) {
  EXPECT_THAT(file_error("[[profiles]]\nname='p'\nweights='1MB'\nload='1ms'\nbatch_sizes=[1,2]\nexec=['1ms']\n"),
              HasSubstr("a.toml:6: 'exec' has 1 durations for 2 batch sizes"));
  EXPECT_THAT(file_error("[[profiles]]\nname='p'\nweights='1MB'\nload='1ms'\nbatch_sizes=[2]\nexec=['1ms']\n"),
              HasSubstr("a.toml:5: 'batch_sizes' must begin with 1"));
  EXPECT_THAT(file_error("[[profiles]]\nname='resnet50'\nweights='1MB'\nload='1ms'\nbatch_sizes=[1]\nexec=['1ms']\n"),
              HasSubstr("'resnet50' is given twice"));
  EXPECT_THAT(file_error("[[profiles]]\nfile='gone.csv'\n"),
              HasSubstr("a.toml:2: 'file' is wrong: profile table 'gone"));
  EXPECT_THAT(file_error("[[profiles]]\nname='p'\npackage='gone'\n"), HasSubstr("a.toml:3: 'package' is wrong"));
  EXPECT_THAT(file_error("[[profiles]]\n"), HasSubstr("needs 'file'"));
}

}  // namespace
}  // namespace foliot
