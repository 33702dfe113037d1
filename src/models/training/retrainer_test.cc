#include "models/training/retrainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <optional>

#include "answer/personal/items/item_table.h"
#include "answer/personal/items/test_items.h"
#include "answer/personal/storage/training_data.h"
#include "answer/personal/storage/user_records.h"
#include "foundation/base/random.h"
#include "foundation/core/catalog.h"
#include "foundation/platform/clock.h"
#include "foundation/store/disk_storage.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kItems = 50, kFeatures = 4;

// One other front end, which keeps user 101 with two observations, each in a reply of its own.
class FakePeers : public RetrainPeers {
 public:
  std::optional<std::vector<std::string>> led() override {
    return leads ? std::optional(std::vector<std::string>{"b"}) : std::nullopt;
  }
  Result<Facts> facts(const std::string&, const std::string&) override {
    return Facts{.version = "1", .quality = "", .observations = observations, .of_version = observations};
  }
  Result<Copies> copies(const std::string&, const std::string&, uint64_t pass) override {
    if (!answers) return Status::unavailable("front end 'b' is gone");
    leads = leads_after_copies;
    const std::vector<UserObservation> one{{.id = pass + 1, .item = pass, .value = 1}};
    return Copies{.copies = {encode_copy(101, 1, one)}, .pass = pass == 0 ? uint64_t{1} : 0};
  }

  bool leads = true;
  bool leads_after_copies = true;
  bool answers = true;
  uint64_t observations = 0;
};

// What users observe follows from the features of `better`; those of version 1 are roughly these, those of `worse` are
// others. Each look at the clock takes a second.
class RetrainerTest : public testing::Test {
 protected:
  RetrainerTest() {
    const std::vector<float> better = rows(2), noise = rows(1);
    std::vector<float> rough = better;
    for (size_t i = 0; i < rough.size(); ++i) rough[i] += noise[i] / 2;
    write_items("repository/movies/1", rough);
    write_items("better", better);
    write_items("worse", rows(3));
    std::ofstream(folder_.path / "worse/training.json") << R"({"log_number": 1, "lambda": 1})";
  }
  std::vector<float> rows(uint64_t seed) const {
    Random random(seed);
    std::vector<float> values(kItems * kFeatures);
    for (float& value : values) value = static_cast<float>(random.normal());
    return values;
  }
  void write_items(const std::string& folder, const std::vector<float>& values) {
    std::filesystem::create_directories(folder_.path / folder);
    std::vector<uint64_t> items(kItems);
    for (size_t i = 0; i < kItems; ++i) items[i] = i;
    ASSERT_TRUE(ItemTable::write(folder_.path / folder / "items.features", kFeatures, items, values).ok());
  }
  // The next version is the better one.
  void open_with(FakePeers& peers) { open(copy("better") + "after_observations = 1200\n", 40, &peers); }
  // As personal.toml says.
  void open(const std::string& retrain, size_t users = 40, RetrainPeers* peers = nullptr) {
    retrainer_.reset();
    models_.reset();
    std::ofstream(movies() / "personal.toml") << "[retrain]\n" << retrain;
    models_ = std::make_unique<PersonalModels>(
        PersonalModels::Options{.is_shared = peers != nullptr, .now = monotonic_now}, catalog_);
    ASSERT_TRUE(models_->open(scan_personal(folder_.path / "repository").value(), folder_.path / "observations").ok());
    observe(users);
    retrainer_ = std::make_unique<Retrainer>(
        Retrainer::Options{.program = {"/bin/sh", "-c", "echo default $0 $@ >&2; exit 3"},
                           .now = [this] { return now_ += Duration::seconds(1); },
                           .wall = [this] { return now_; },
                           .log = [this](bool, const std::string& line) { log_.push_back(line); },
                           .peers = peers},
        *models_);
    retrainer_->open();
  }
  void observe(size_t users) {
    const std::vector<float> better = rows(2);
    Random random(9);
    for (size_t user = 1; user <= users; ++user) {
      std::vector<double> weights(kFeatures);
      for (double& weight : weights) weight = random.normal();
      std::vector<ItemObservation> observations;
      for (size_t i = 0; i < 30; ++i) {
        const size_t item = (7 * i + user) % kItems;
        double value = 0;
        for (size_t j = 0; j < kFeatures; ++j) value += weights[j] * better[item * kFeatures + j];
        observations.push_back({.user = user, .item = item, .value = value, .id = ++id_});
      }
      std::promise<PersonalResult> result;
      models_->observe({.model = "movies", .arrival = monotonic_now()}, observations,
                       [&result](PersonalResult given) { result.set_value(std::move(given)); });
      ASSERT_TRUE(std::holds_alternative<PersonalAnswer>(result.get_future().get()));
    }
  }
  // Copies this folder as the next version.
  std::string copy(const std::string& what) const {
    const std::string next = "$(($(ls {folder} | grep -E '^[0-9]+$' | sort -n | tail -n 1) + 1))";
    return fmt::format("command = [\"sh\", \"-c\", \"cp -r {} {{folder}}/{}\"]\n", (folder_.path / what).string(),
                       next);
  }
  std::filesystem::path movies() const { return folder_.path / "repository/movies"; }
  std::string version() const { return models_->model("movies")->version(); }
  std::string metric(const std::string& outcome) const {
    const std::string page = retrainer_->text();
    const std::string key = "foliot_retrain_total{model=\"movies\",outcome=\"" + outcome + "\"} ";
    const size_t at = page.find(key);
    if (at == std::string::npos) return page;
    return page.substr(at + key.size(), page.find('\n', at) - at - key.size());
  }
  // Looks until nothing is due.
  size_t retrained() {
    size_t count = 0;
    while (retrainer_->look()) ++count;
    return count;
  }

  TestFolder folder_{"retrainer"};
  Catalog catalog_;
  TimePoint now_ = TimePoint() + Duration::seconds(1'000'000);
  uint64_t id_ = 0;
  std::vector<std::string> log_;
  std::unique_ptr<PersonalModels> models_;
  std::unique_ptr<Retrainer> retrainer_;
};

TEST_F(RetrainerTest, TakesABetterVersion) {
  open(copy("better") + "after_observations = 1200\n");
  EXPECT_EQ(retrained(), 1u);
  EXPECT_EQ(version(), "2");
  EXPECT_EQ(metric("taken"), "1");
  EXPECT_THAT(log_,
              testing::ElementsAre("personal model 'movies': is retrained: 1200 observations since the last retraining",
                                   HasSubstr("version 2 is better")));
}

TEST_F(RetrainerTest, NeverTakesAWorseOne) {
  open(copy("worse") + "after_observations = 1200\n");
  EXPECT_EQ(retrained(), 1u);
  EXPECT_EQ(version(), "1");
  EXPECT_EQ(metric("not_taken"), "1");
  EXPECT_THAT(log_.back(), HasSubstr("version 2 is not better on what is withheld"));
  EXPECT_FALSE(std::filesystem::exists(movies() / "2")) << "the next training would start from it";
  EXPECT_TRUE(std::filesystem::exists(movies() / ".refused/items.features"));
  observe(40);
  EXPECT_EQ(retrained(), 1u) << "it replaces the one that was refused";
}

TEST_F(RetrainerTest, ReportsHowACommandFailed) {
  const auto failure = [this](const std::string& command) {
    open(command + "\nafter_observations = 40\n", id_ == 0 ? 40 : 0);
    EXPECT_EQ(retrained(), 1u);
    EXPECT_EQ(metric("failed"), "1");
    EXPECT_EQ(version(), "1");
    EXPECT_THAT(retrainer_->text(), HasSubstr("foliot_retrain_failing{model=\"movies\"} 1"));
    return log_.back();
  };
  EXPECT_THAT(failure("command = \"true\""), HasSubstr("its command left no version above 1 in "));
  EXPECT_THAT(failure("command = [\"sh\", \"-c\", \"echo no money >&2; exit 4\"]"),
              HasSubstr("retraining failed: exit code 4: no money"));
  EXPECT_THAT(failure("command = \"no-such-program\""), AllOf(HasSubstr("no-such-program"), HasSubstr("No such file")));
  EXPECT_THAT(failure("command = [\"sleep\", \"1000000\"]\ntime_limit = \"30s\""),
              HasSubstr("did not end within time_limit, 30.000 s"));
  EXPECT_THAT(failure("command = [\"sh\", \"-c\", \"yes >&2\"]\ntime_limit = \"1s\""), HasSubstr("did not end within"));
  EXPECT_THAT(failure("command = [\"mkdir\", \"{folder}/2\"]"), HasSubstr("version 2 cannot be used: "));
  EXPECT_THAT(failure(""), AllOf(HasSubstr("exit code 3"), HasSubstr("retrain " + movies().string() + " --state " +
                                                                     (folder_.path / "observations/movies").string() +
                                                                     " --time-limit 7200000000000ns")));
}

TEST_F(RetrainerTest, ARestartDoesNotBeginAnew) {
  const std::string triggers = "every = \"10h\"\nafter_observations = 40\n";
  open(copy("better") + triggers);
  EXPECT_EQ(retrained(), 1u);
  open(copy("better") + triggers, 0);
  EXPECT_EQ(retrained(), 0u) << "of the log it has seen all";
  now_ += Duration::seconds(9 * 3600);
  open(copy("better") + triggers, 0);
  EXPECT_EQ(retrained(), 0u);
  now_ += Duration::seconds(3600);
  EXPECT_EQ(retrained(), 1u) << "ten hours after the one before the restart";
}

TEST_F(RetrainerTest, KeepsTwoOfTheVersionsThatItMade) {
  open(copy("better") + "after_observations = 1200\n");
  for (const char* name : {"2", "3", "4"}) {
    EXPECT_EQ(retrained(), 1u);
    EXPECT_EQ(version(), name);
    observe(40);
  }
  EXPECT_TRUE(std::filesystem::exists(movies() / "1")) << "it was made by a user";
  EXPECT_FALSE(std::filesystem::exists(movies() / "2"));
  EXPECT_TRUE(std::filesystem::exists(movies() / "3"));
}

TEST_F(RetrainerTest, StoppingKillsWhatRuns) {
  open(
      "command = [\"sh\", \"-c\", \"touch {folder}/begun; sleep 1000000\"]\nafter_observations = 1200\ntime_limit = "
      "\"1000000h\"\n");
  ASSERT_TRUE(retrainer_->start().ok());
  while (!std::filesystem::exists(movies() / "begun")) ::sched_yield();
  retrainer_->stop();
  EXPECT_EQ(metric("failed"), "0");
}

TEST_F(RetrainerTest, TrainsOnTheUsersOfAllFrontEndsThatItLeads) {
  FakePeers peers;
  const std::string keep = (folder_.path / "gathered").string();
  const std::string better = (folder_.path / "better").string();
  open(fmt::format(
           "command = [\"sh\", \"-c\", \"cp -r {{state}} {}; cp -r {} {{folder}}/2\"]\nafter_observations = 1300\n",
           keep, better),
       40, &peers);
  EXPECT_EQ(retrained(), 0u) << "1200 observations are here";
  peers.observations = 100;
  EXPECT_EQ(retrained(), 1u);
  EXPECT_EQ(version(), "2") << log_.back();
  const auto storage = DiskStorage::open_to_read(keep);
  ASSERT_TRUE(storage.ok());
  const Result<TrainingData> data = TrainingData::read(**storage);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data->ids.size(), 1202u);
  EXPECT_EQ(data->users.back(), 101u);
  EXPECT_EQ(data->counts.back(), 2u);
  EXPECT_TRUE(std::filesystem::exists(movies() / "2/made_by_server")) << "the others find it here";
  EXPECT_FALSE(std::filesystem::exists(folder_.path / "observations/movies/gathered"));
  EXPECT_EQ(retrained(), 0u);
}

TEST_F(RetrainerTest, AfterARollbackTrainsForAllFromWhatIsServed) {
  FakePeers peers;
  write_items("repository/movies/2", rows(7));
  const std::string seen = (folder_.path / "seen").string();
  open(fmt::format("command = [\"sh\", \"-c\", \"ls {{folder}} >{0}; cat {{state}}/served_version >>{0}; cp -r {1} "
                   "{{folder}}/3\"]\nafter_observations = 1200\n",
                   seen, (folder_.path / "better").string()),
       40, &peers);
  ASSERT_TRUE(models_->load("movies", {.version = "1", .compare = false}).ok());
  EXPECT_EQ(retrained(), 1u);
  EXPECT_EQ(version(), "3") << log_.back();
  std::ifstream in(seen);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "1\n2\npersonal.toml\n1\n\n");
}

TEST_F(RetrainerTest, AnotherFrontEndThatIsGoneIsNoReasonToTrainOnLess) {
  FakePeers peers;
  open_with(peers);
  peers.answers = false;
  EXPECT_EQ(retrained(), 1u);
  EXPECT_THAT(log_.back(), HasSubstr("retraining failed: front end 'b' is gone"));
  EXPECT_EQ(version(), "1");
  now_ += Duration::seconds(120);
  peers.answers = true;
  EXPECT_EQ(retrained(), 1u);
  EXPECT_EQ(version(), "2");
}

TEST_F(RetrainerTest, WhoLeadsNoLongerAfterUsersWereGatheredTrainsNothing) {
  FakePeers peers;
  open_with(peers);
  peers.leads_after_copies = false;
  EXPECT_EQ(retrained(), 1u);
  EXPECT_THAT(log_.back(), HasSubstr("retraining failed: front ends have come, gone or moved users meanwhile"));
  EXPECT_EQ(version(), "1");
}

TEST_F(RetrainerTest, TakesWhatTheFrontEndThatLeadsHasMade) {
  FakePeers peers;
  peers.leads = false;
  open_with(peers);
  std::filesystem::copy(folder_.path / "worse", movies() / "2");
  EXPECT_EQ(retrained(), 0u);
  EXPECT_EQ(version(), "1") << "no front end has taken it";
  std::ofstream(movies() / "2/made_by_server") << "\n";
  EXPECT_EQ(retrained(), 0u);
  EXPECT_EQ(version(), "2") << "the comparison is the leader's";
}

TEST_F(RetrainerTest, TriesAgainToTakeWhatAnotherFrontEndHasMade) {
  FakePeers peers;
  peers.leads = false;
  open_with(peers);
  std::filesystem::create_directories(movies() / "2");
  std::ofstream(movies() / "2/made_by_server") << "\n";  // but no table
  for (int i = 0; i < 40; ++i) EXPECT_EQ(retrained(), 0u);
  EXPECT_EQ(version(), "1");
  EXPECT_EQ(log_.size(), 1u) << "it is said once";
  std::filesystem::copy(folder_.path / "worse/items.features", movies() / "2/items.features");
  std::filesystem::copy(folder_.path / "worse/training.json", movies() / "2/training.json");
  for (int i = 0; i < 40; ++i) EXPECT_EQ(retrained(), 0u);
  EXPECT_EQ(version(), "2") << log_.back();
}

// A retraining in which the process was killed.
TEST_F(RetrainerTest, RemovesWhatALeaderHasLeft) {
  FakePeers peers;
  std::filesystem::create_directories(movies() / ".training.5/2");
  std::filesystem::create_directories(folder_.path / "observations/movies/gathered");
  open_with(peers);
  EXPECT_FALSE(std::filesystem::exists(folder_.path / "observations/movies/gathered")) << "forgotten users are in it";
  EXPECT_EQ(retrained(), 1u);
  EXPECT_FALSE(std::filesystem::exists(movies() / ".training.5"));
  EXPECT_EQ(version(), "2");
}

}  // namespace
}  // namespace foliot
