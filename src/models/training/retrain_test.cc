#include "models/training/retrain.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "answer/personal/items/personal_version.h"
#include "answer/personal/storage/user_records.h"
#include "engine/container/container_launch.h"
#include "foundation/store/disk_storage.h"
#include "foundation/store/log_files.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLaunches = "FOLIOT_TEST_LAUNCHES";

// Before main(): this program as the launcher.
[[maybe_unused]] const bool is_launcher = [] {
  if (std::getenv(kLaunches) != nullptr) ::_exit(launch_container());
  return false;
}();

// A package `foliot` of the standard library only, which checks what it reads, and writes features of 2 and weights
// of 3.
constexpr const char* kTrainer = R"(
import array, json, os, sys, time
folder, output = sys.argv[1], os.environ["FOLIOT_TRAINING_OUTPUT"]
def read(name, type):
    values = array.array(type)
    with open(os.path.join(folder, name), "rb") as f:
        values.frombytes(f.read())
    return list(values)
def write(name, values):
    with open(os.path.join(output, name), "wb") as f:
        array.array("f", values).tofile(f)
options = json.load(open(os.path.join(folder, "options.json")))
assert read("users.u64", "Q") == [4, 7], read("users.u64", "Q")
assert read("numbers.u64", "Q") == [2, 1]
assert read("counts.u64", "Q") == [1, 2]
assert read("items.u64", "Q") == [20, 10, 20]
assert read("values.f32", "f") == [3, 1, 2]
assert read("known_items.u64", "Q") == [10, 20]
is_trained = read("known_features.f32", "f") == [2, 2, 2, 2]
assert is_trained or read("known_features.f32", "f") == [1, 0, 0, 1]
assert options["known_log_number"] == (2 if is_trained else 0), options
d = options["features"]
features, weights, training = [2.0] * (2 * d), [3.0] * (2 * d), {"lambda": 1.5, "metrics": {"loss": 0.25}}
print("half of it")
exec(open(os.path.join(folder, "trainer.py")).read())
write("features.f32", features)
write("weights.f32", weights)
with open(os.path.join(output, "training.json"), "w") as f:
    json.dump(training, f)
)";

class NoReader : public LogReader {
 public:
  Status on_snapshot(std::span<const std::byte>) override { return Status(); }
  Status on_record(uint64_t, std::span<const std::byte>) override { return Status(); }
};

class RetrainTest : public testing::Test {
 protected:
  RetrainTest() {
    std::string name = testing::TempDir() + "foliot_retrain_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(folder_ / "model" / "3");
    std::filesystem::create_directories(folder_ / "package" / "foliot");
    std::ofstream(folder_ / "package" / "foliot" / "__init__.py") << "";
    std::ofstream(folder_ / "package" / "foliot" / "trainer.py") << kTrainer;
    const std::vector<uint64_t> items = {10, 20};
    const std::vector<float> rows = {1, 0, 0, 1};
    EXPECT_TRUE(ItemTable::write(folder_ / "model" / "3" / "items.features", 2, items, rows).ok());
    write_log();
    options_.launcher = {"/proc/self/exe"};
    options_.package = folder_ / "package";
    ::setenv(kLaunches, "1", 1);
  }
  ~RetrainTest() override {
    ::unsetenv(kLaunches);
    std::filesystem::remove_all(folder_);
  }
  void write_log() {
    const auto storage = DiskStorage::open(folder_ / "state").value();
    NoReader reader;
    LogFiles files = LogFiles::open(*storage, 1, reader).value();
    const std::vector<UserObservation> records[3] = {{{1, 10, 1}, {2, 20, 2}}, {{1, 20, 3}}, {{3, 10, 9}}};
    const uint64_t users[3] = {7, 4, 4};
    for (uint64_t number = 1; number <= 3; ++number) {
      const std::vector<std::byte> record = encode_record(users[number - 1], records[number - 1]);
      ASSERT_TRUE(files
                      .write({.first = number,
                              .synced = number - 1,
                              .begins_file = number == 1,
                              .lengths = {static_cast<uint32_t>(record.size())},
                              .bytes = record})
                      .ok());
    }
  }
  // With this code before the trainer writes.
  Result<std::string> train(const std::string& code) {
    std::ofstream(folder_ / "code.py") << code;
    options_.trainer = folder_ / "code.py";
    return retrain(folder_ / "model", folder_ / "state", options_,
                   [this](std::string_view line) { lines_.emplace_back(line); });
  }
  std::string failure(const std::string& code) {
    const Result<std::string> version = train(code);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "model" / "4"));
    return version.ok() ? "" : version.status().message();
  }

  std::filesystem::path folder_;
  RetrainOptions options_;
  std::vector<std::string> lines_;
};

TEST_F(RetrainTest, MakesTheNextVersion) {
  const Result<std::string> name = train("");
  ASSERT_TRUE(name.ok()) << name.status().message();
  EXPECT_EQ(*name, "4");
  EXPECT_THAT(lines_, testing::Contains("half of it"));
  const PersonalVersion version = PersonalVersion::open(folder_ / "model" / "4").value();
  EXPECT_EQ(version.name, "4");
  EXPECT_EQ(version.log_number, 2u);
  EXPECT_EQ(version.lambda, 1.5F);
  EXPECT_EQ(version.items->row(1)[1], 2);
  EXPECT_EQ(version.trained->users(), 2u);
  const TrainedWeights::User user = *version.trained->find(7);
  EXPECT_EQ(user.number, 1u);
  EXPECT_EQ(user.count, 2u);
  EXPECT_EQ(user.weights[0], 3);
  std::ifstream training(folder_ / "model" / "4" / "training.json");
  const std::string json(std::istreambuf_iterator<char>(training), {});
  EXPECT_EQ(json, "{\"log_number\": 2, \"lambda\": 1.5, \"withholds\": true, \"metrics\": {\"loss\":0.25}}\n");
  std::ofstream(folder_ / "state" / "served_version") << "3\n";
  EXPECT_EQ(*train("assert not is_trained"), "5") << "from version 3, which is served after a rollback";
  std::filesystem::remove_all(folder_ / "model" / "5");
  std::filesystem::remove(folder_ / "state" / "served_version");
  options_.features = 5;
  EXPECT_EQ(*train("open(output + '/observations.parquet', 'w').write('x')"), "5") << "from version 4";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "model" / "observations.parquet"));
  EXPECT_EQ(PersonalVersion::open(folder_ / "model" / "5")->items->features(), 5u);
}

TEST_F(RetrainTest, TheTrainerDoesNotSeeWhatIsWithheldAndWhatIsOutside) {
  {
    const auto storage = DiskStorage::open(folder_ / "hidden").value();
    NoReader reader;
    LogFiles files = LogFiles::open(*storage, 1, reader).value();
    uint64_t withheld = 1;
    while (!UserObservation{.id = withheld}.is_withheld()) ++withheld;
    for (uint64_t number = 1; number <= 21; ++number) {  // the last one proves that those before last
      const float value = number == 20 ? 1e9F : 3;
      const std::vector<UserObservation> all = {{withheld, 10, 4}, {withheld + 1, 20, value}};
      const std::vector<std::byte> record = encode_record(number, all);
      ASSERT_TRUE(files
                      .write({.first = number,
                              .synced = number - 1,
                              .begins_file = number == 1,
                              .lengths = {static_cast<uint32_t>(record.size())},
                              .bytes = record})
                      .ok());
    }
  }
  std::ofstream(folder_ / "package" / "foliot" / "trainer.py") << R"(
import array, os, sys
def read(name):
    values = array.array("f")
    with open(os.path.join(sys.argv[1], name), "rb") as f:
        values.frombytes(f.read())
    return list(values)
values, probabilities = read("values.f32"), read("probabilities.f32")
hidden = [value != value for value in values]
assert hidden == [probability == -1 for probability in probabilities]
assert [value for value in values if value == value] == [3] * 19, values
print("hidden", sum(hidden), "of", len(values))
)";
  const auto say = [this](std::string_view line) { lines_.emplace_back(line); };
  EXPECT_THAT(retrain(folder_ / "model", folder_ / "hidden", options_, say).status().message(),
              HasSubstr("the trainer did not write features.f32"));
  EXPECT_THAT(lines_, testing::Contains("hidden 21 of 40"));
  EXPECT_THAT(lines_, testing::Contains(HasSubstr("1 of them have values outside of")));
}

TEST_F(RetrainTest, LibrariesOfTheTrainerHaveSoManyThreads) {
  options_.threads = 3;
  ASSERT_TRUE(train("print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['OMP_NUM_THREADS'])").ok());
  EXPECT_THAT(lines_, testing::Contains("3 3"));
}

TEST_F(RetrainTest, WhatTheTrainerMadeIsChecked) {
  EXPECT_THAT(failure("features = features[:2]"),
              HasSubstr("features.f32 has 8 bytes: must have 2 values for each of 2 items, 16 bytes"));
  EXPECT_THAT(failure("weights[3] = float('nan')"), HasSubstr("weights.f32 has nan at column 1 of user 7"));
  EXPECT_THAT(failure("features[0] = float('inf')"), HasSubstr("features.f32 has inf at column 0 of item 10"));
  EXPECT_THAT(failure("training = {'lambda': 0}"), HasSubstr("must have a lambda above 0"));
  EXPECT_THAT(failure("training = []"), HasSubstr("is no JSON object"));
  EXPECT_THAT(failure("write = lambda name, values: None"), HasSubstr("the trainer did not write features.f32"));
  EXPECT_THAT(failure("raise ValueError('too little data')"), HasSubstr("ValueError: too little data"));
}

TEST_F(RetrainTest, SparkIsTrainedOnWithoutConfinement) {
  options_.spark = "local[2]";
  std::string trainer = kTrainer;
  const std::string custom = "exec(open(os.path.join(folder, \"trainer.py\")).read())";
  trainer.replace(
      trainer.find(custom), custom.size(),
      "assert sys.argv[2] == 'local[2]'\nassert os.path.exists(os.path.join(folder, 'trainer.py'))\nopen('" +
          (folder_ / "state" / "lock").string() + "')");
  std::ofstream(folder_ / "package" / "foliot" / "spark_trainer.py") << trainer;
  std::ofstream(options_.trainer = folder_ / "code.py") << "x = 1\n";
  const Result<std::string> name =
      retrain(folder_ / "model", folder_ / "state", options_, [](std::string_view /*line*/) {});
  ASSERT_TRUE(name.ok()) << name.status().message();
  EXPECT_EQ(PersonalVersion::open(folder_ / "model" / *name)->trained->users(), 2u);
}

TEST_F(RetrainTest, ATrainerThatHangsIsKilled) {
  options_.time_limit = Duration::milliseconds(1);
  EXPECT_THAT(failure("time.sleep(600)"), HasSubstr("the trainer did not end within 1 ms"));
}

TEST_F(RetrainTest, TheTrainerReachesNothingElse) {
  EXPECT_THAT(failure("open('" + (folder_ / "state" / "lock").string() + "')"), HasSubstr("PermissionError"));
  EXPECT_THAT(failure("import socket; socket.create_connection(('127.0.0.1', 1))"), HasSubstr("Error"));
  EXPECT_THAT(failure("open(folder + '/users.u64', 'w')"),
              testing::AnyOf(HasSubstr("PermissionError"), HasSubstr("Read-only file system")));
}

TEST_F(RetrainTest, OneTrainsAModelAtATime) {
  const int other = ::open((folder_ / "model").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_THAT(failure(""), HasSubstr("model is retrained by another process"));
  ::close(other);
  EXPECT_TRUE(train("").ok());
}

TEST_F(RetrainTest, MissingFoldersAreNamed) {
  options_.trainer.clear();
  const auto message = [this](const std::filesystem::path& model, const std::filesystem::path& state) {
    return std::string(retrain(folder_ / model, folder_ / state, options_, [](std::string_view) {}).status().message());
  };
  EXPECT_THAT(message("nothing", "state"), HasSubstr("nothing has no version"));
  EXPECT_THAT(message("model", "nothing"), HasSubstr("nothing: cannot read"));
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_THAT(message("model", "empty"), HasSubstr("empty: the log has no observation"));
}

}  // namespace
}  // namespace foliot
