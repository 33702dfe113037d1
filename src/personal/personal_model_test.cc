#include "personal/personal_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <set>

#include "personal/test_items.h"
#include "store/disk_storage.h"
#include "store/simulated_storage.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

// The answer of a call, once it is there.
class Answer {
 public:
  PersonalModel::Done done() {
    return [this](const Status& status) {
      const std::lock_guard lock(mutex_);
      status_ = status;
      changed_.notify_all();
    };
  }
  Status wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return status_.has_value(); });
    return *status_;
  }
  bool is_there() {
    const std::lock_guard lock(mutex_);
    return status_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Status> status_;
};

class PersonalModelTest : public testing::Test {
 protected:
  Result<std::unique_ptr<PersonalModel>> try_open() {
    FOLIOT_ASSIGN_OR_RETURN(std::unique_ptr<Storage> storage, DiskStorage::open(folder_.path / "state"));
    return PersonalModel::open(std::move(storage), {.items = items_}, options_);
  }
  std::unique_ptr<PersonalModel> open() {
    auto model = try_open();
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }
  static Status observe(PersonalModel& model, uint64_t user, std::vector<UserObservation> observations) {
    Answer answer;
    FOLIOT_RETURN_IF_ERROR(model.observe(user, observations, answer.done()));
    return answer.wait();
  }
  static void wait_for_snapshots(PersonalModel& model, uint64_t count) {
    while (model.snapshots() < count) ::sched_yield();
  }

  const TestFolder folder_{"personal_model"};
  const std::shared_ptr<const ItemTable> items_ = drawn_items(folder_.path, 8, 100);
  PersonalModel::Options options_{.exploration = {.kind = ExplorationKind::kGreedy, .pool = 0}};
};

TEST_F(PersonalModelTest, LearnsFromTheNextRequestOn) {
  const auto model = open();
  EXPECT_EQ(model->predict(1, 10)->value, 0);
  std::vector<UserObservation> many;
  for (uint64_t id = 0; id < 200; ++id) many.push_back({id, 10, 2.5});
  ASSERT_TRUE(observe(*model, 1, many).ok());
  EXPECT_NEAR(model->predict(1, 10)->value, 2.5, 0.05);
  EXPECT_EQ(model->top_k(1, {}, 3)->places.size(), 3u);
  const std::vector<uint64_t> candidates = {20, 10};
  EXPECT_EQ(model->top_k(1, candidates, 1)->places.front().item, 10u);
}

TEST_F(PersonalModelTest, StateOutlivesTheProcess) {
  float before = 0;
  {
    const auto model = open();
    ASSERT_TRUE(observe(*model, 1, {{1, 10, 1}, {2, 20, -1}}).ok());
    model->request_snapshot();
    wait_for_snapshots(*model, 1);
    ASSERT_TRUE(observe(*model, 1, {{3, 30, 2}}).ok());
    ASSERT_TRUE(observe(*model, 2, {{1, 10, 5}}).ok());
    before = model->predict(1, 40)->value;
  }
  const auto model = open();
  EXPECT_EQ(model->users(), 2u);
  EXPECT_EQ(model->observations(1).size(), 3u);
  EXPECT_NEAR(model->predict(1, 40)->value, before, 1e-3);
}

TEST_F(PersonalModelTest, RetriesAreHarmless) {
  auto model = open();
  ASSERT_TRUE(observe(*model, 1, {{7, 10, 1}, {8, 10, 1}}).ok());
  ASSERT_TRUE(observe(*model, 1, {{7, 10, 1}, {8, 10, 1}}).ok());
  ASSERT_TRUE(observe(*model, 1, {{8, 10, 1}, {9, 10, 1}}).ok());
  ASSERT_TRUE(observe(*model, 2, {{7, 10, 1}}).ok());  // ids are those of a user
  EXPECT_EQ(model->observations(1).size(), 3u);
  EXPECT_EQ(model->observations(2).size(), 1u);
  model.reset();
  EXPECT_EQ(open()->observations(1).size(), 3u);
}

TEST_F(PersonalModelTest, AForgottenUserIsGoneFromStateAndFiles) {
  options_.log.file_bytes_max = 1;  // each batch has a file of its own
  auto model = open();
  ASSERT_TRUE(observe(*model, 0x1234567890abcdef, {{7, 10, 1}}).ok());
  Answer answer;
  ASSERT_TRUE(model->forget(0x1234567890abcdef, answer.done()).ok());
  ASSERT_TRUE(answer.wait().ok());
  EXPECT_EQ(model->users(), 0u);
  ASSERT_TRUE(observe(*model, 2, {{7, 10, 1}}).ok());
  model->request_snapshot();
  wait_for_snapshots(*model, 1);
  model.reset();
  const auto storage = DiskStorage::open(folder_.path / "state").value();
  const std::vector<std::string> names = storage->list().value();
  for (const std::string& name : names) {
    const std::vector<std::byte> bytes = storage->read(name).value();
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(text.find("\xef\xcd\xab\x90\x78\x56\x34\x12"), std::string::npos) << name;
  }
}

TEST_F(PersonalModelTest, BadInputIsRefusedByName) {
  options_.observations_per_user_max = 3;
  options_.value_max = 5;
  const auto model = open();
  const auto message = [&](std::vector<UserObservation> observations) {
    return observe(*model, 1, std::move(observations)).message();
  };
  EXPECT_THAT(message({{1, 11, 1}}), HasSubstr("item 11 is unknown"));
  EXPECT_THAT(message({{1, 10, std::numeric_limits<float>::quiet_NaN()}}), HasSubstr("value of item 10 is nan"));
  EXPECT_THAT(message({}), HasSubstr("0 observations in a call"));
  EXPECT_THAT(message(std::vector<UserObservation>(1001)), HasSubstr("1001 observations in a call: must be 1 to 1000"));
  EXPECT_THAT(message({{1, 10, 1}, {2, 10, 1}, {3, 10, 1}, {4, 10, 1}}), HasSubstr("over the limit of 3"));
  EXPECT_EQ(model->users(), 0u);
  EXPECT_EQ(message({{1, 10, 1e9F}, {2, 10, 5}}), "");  // clipped to 5
  EXPECT_LE(model->predict(1, 10)->value, 5);
  EXPECT_THAT(model->predict(1, 11).status().message(), HasSubstr("item 11 is unknown"));
  EXPECT_THAT(model->top_k(1, {}, 0).status().message(), HasSubstr("k = 0"));
  const std::vector<uint64_t> twice = {20, 10, 20};
  EXPECT_THAT(model->top_k(1, twice, 1).status().message(), HasSubstr("item 20 is named twice"));
  const std::vector<uint64_t> unknown = {20, 11};
  EXPECT_THAT(model->top_k(1, unknown, 1).status().message(), HasSubstr("item 11 is unknown"));
}

TEST_F(PersonalModelTest, BadOptionsAreRefusedByName) {
  for (const float lambda : {0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    options_.table.lambda = lambda;
    EXPECT_THAT(try_open().status().message(), HasSubstr("lambda = "));
  }
}

TEST_F(PersonalModelTest, AFullDiskIsAnErrorOfTheCall) {
  auto storage = std::make_unique<SimulatedStorage>();
  SimulatedStorage& disk = *storage;
  const auto model = PersonalModel::open(std::move(storage), {.items = items_}, options_).value();
  ASSERT_TRUE(observe(*model, 1, {{1, 10, 1}}).ok());
  disk.set_faults({.disk_full = 1});
  EXPECT_EQ(observe(*model, 1, {{2, 10, 1}}).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(model->observations(1).size(), 1u);
  EXPECT_TRUE(model->predict(1, 10).ok());
}

TEST_F(PersonalModelTest, AsynchronousCallsAreAnsweredAtOnce) {
  options_.durability_is_async = true;
  auto storage = std::make_unique<SimulatedStorage>(1, SimulatedStorage::Faults{.disk_full = 1});
  const auto model = PersonalModel::open(std::move(storage), {.items = items_}, options_).value();
  Answer answer;
  const std::vector<UserObservation> one = {{1, 10, 1}};
  ASSERT_TRUE(model->observe(1, one, answer.done()).ok());
  EXPECT_TRUE(answer.is_there());
  EXPECT_TRUE(answer.wait().ok());
}

constexpr uint64_t kUsers = 50;

// A process that observes until it is killed, and writes what was acknowledged to a pipe.
class KilledProcess {
 public:
  KilledProcess(const std::filesystem::path& state, std::shared_ptr<const ItemTable> items, uint64_t first_id) {
    FOLIOT_CHECK(::pipe(pipe_) == 0);
    process_ = ::fork();
    FOLIOT_CHECK(process_ >= 0);
    if (process_ != 0) {
      ::close(pipe_[1]);
      return;
    }
    PersonalModel::Options options;
    options.observations_per_snapshot = 200;
    options.log.file_bytes_max = 4000;
    options.log.records_max = 500;
    auto model = PersonalModel::open(DiskStorage::open(state).value(), {.items = std::move(items)}, options).value();
    for (uint64_t id = first_id;; ++id) {
      const std::vector<UserObservation> one = {{id, 10 * (id % 100), 1}};
      const int pipe = pipe_[1];
      const Status status = model->observe(id % kUsers, one, [pipe, id](const Status& written) {
        if (written.ok() && ::write(pipe, &id, sizeof id) != sizeof id) ::_exit(1);
      });
      if (!status.ok()) ::sched_yield();
    }
  }
  KilledProcess(const KilledProcess&) = delete;
  KilledProcess& operator=(const KilledProcess&) = delete;

  // Once it has acknowledged so many. Returns all that were acknowledged.
  std::vector<uint64_t> kill_after(size_t count) {
    std::vector<uint64_t> ids;
    uint64_t id = 0;
    while (::read(pipe_[0], &id, sizeof id) == sizeof id) {
      ids.push_back(id);
      if (ids.size() == count) ::kill(process_, SIGKILL);
    }
    ::close(pipe_[0]);
    int status = 0;
    FOLIOT_CHECK(::waitpid(process_, &status, 0) == process_);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    return ids;
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t process_ = -1;
};

TEST_F(PersonalModelTest, WhatAKilledProcessAcknowledgedIsThereOnce) {
  const char* const named = std::getenv("FOLIOT_PERSONAL_KILLS");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  const uint64_t kills = named == nullptr ? 5 : std::strtoull(named, nullptr, 10);
  Random random(11);
  std::set<uint64_t> acknowledged;
  uint64_t next_id = 1;
  for (uint64_t kill = 0; kill < kills; ++kill) {
    KilledProcess process(folder_.path / "state", items_, next_id);
    for (const uint64_t id : process.kill_after(1 + random.below(500))) {
      EXPECT_TRUE(acknowledged.insert(id).second) << id;
      next_id = std::max(next_id, id + 1);
    }
    next_id += 100'000;  // more than were under way
    const auto model = open();
    size_t found = 0;
    std::set<uint64_t> ids;
    size_t observations = 0;
    for (uint64_t user = 0; user < kUsers; ++user) {
      for (const UserObservation& observation : model->observations(user)) {
        ids.insert(observation.id);
        found += acknowledged.contains(observation.id) ? 1 : 0;
        ++observations;
      }
    }
    ASSERT_EQ(found, acknowledged.size());  // each is there
    ASSERT_EQ(ids.size(), observations);    // once
  }
}

}  // namespace
}  // namespace foliot
