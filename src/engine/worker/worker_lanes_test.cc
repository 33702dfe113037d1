// A worker of a device with several lanes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "engine/worker/lane_claims.h"
#include "engine/worker/worker.h"
#include "foundation/base/random.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr LaneInterval kLeft{0, 1};
constexpr LaneInterval kRight{1, 1};
constexpr LaneInterval kBoth{0, 2};

// Takes no time, and checks that no lane runs two EXECs at once.
class LaneEngine : public Engine {
 public:
  Result<WorkerModel> add(const EngineModel& model) override { return WorkerModel{model.info->id, 1, {1}, {{64, 64}}}; }
  Status prepare(ModelId, size_t) override { return Status(); }
  void remove(ModelId) override {}
  Status load(ModelId, std::span<const PageIndex>) override { return Status(); }
  void unload(ModelId) override {}
  void input(const InferWork&) override {}
  void output(const InferWork&) override { ++outputs; }
  Status run(const InferWork& work) override {
    const LaneInterval lanes = work.action.lanes;
    for (uint32_t lane = lanes.first; lane < lanes.end(); ++lane) EXPECT_FALSE(busy_[lane].exchange(true));
    for (uint32_t lane = lanes.first; lane < lanes.end(); ++lane) busy_[lane].store(false);
    return Status();
  }
  std::atomic<int> outputs{0};

 private:
  std::array<std::atomic<bool>, kLanesMax> busy_{};
};

class CountedOutcomes : public OutcomeSink {
 public:
  void report(const Outcome& outcome) override {
    all.push_back(outcome);
    ++count;
  }
  std::vector<Outcome> all;
  std::atomic<uint64_t> count{0};
};

class CountedWaker : public Waker {
 public:
  void wake() override { ++wakes; }
  std::atomic<int> wakes{0};
};

class WorkerLanesTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kIoBytes = 4096;
  explicit WorkerLanesTest(uint32_t lanes = 2)
      : worker_({.page_count = 1, .io_cache_bytes = kIoBytes, .models_max = 1, .lane_count = lanes}, engine_, outcomes_,
                {waker_, waker_, waker_, waker_, std::vector<Waker*>(lanes - 1, &waker_)}),
        executors_(worker_.executors()) {
    auto info = std::make_shared<ModelInfo>();
    info->id = ModelId(0);
    worker_.add_model(engine_.add({info}).value());
    worker_.send({.id = ActionId(1000), .type = ActionType::kLoad, .model = ModelId(0), .latest = at(1000)});
    poll_all(*executors_[0]);
    outcomes_.all.clear();
    outcomes_.count = 0;
  }

  void poll_all(Executor& executor) {
    while (executor.poll(at(0)).run) executor.finish(at(0), at(0), executor.perform());
  }
  // Sends an INFER, which is at the executors of its lanes afterwards.
  void infer(uint64_t id, LaneInterval lanes, TimePoint earliest = at(0), TimePoint latest = at(1000)) {
    Action action{.id = ActionId(id),
                  .type = ActionType::kInfer,
                  .model = ModelId(0),
                  .earliest = earliest,
                  .latest = latest,
                  .batch_size = 1,
                  .lanes = lanes};
    action.rows.add({RequestId(id), PayloadHandle(id)});
    worker_.send(action);
    poll_all(*executors_[1]);
  }
  Executor& lane(uint32_t index) { return index == 0 ? *executors_[2] : *executors_[3 + index]; }
  // The action that the lane begins at `now`; 0 for none.
  uint64_t begin(uint32_t index, TimePoint now) {
    const Executor::Step step = lane(index).poll(now);
    return step.run ? step.action->id.value() : 0;
  }
  void end(uint32_t index, TimePoint start, TimePoint end) {
    lane(index).finish(start, end, lane(index).perform());
    poll_all(*executors_[3]);
    poll_all(*executors_[1]);
  }
  std::map<uint64_t, OutcomeStatus> statuses() {
    poll_all(*executors_[3]);
    poll_all(*executors_[1]);
    std::map<uint64_t, OutcomeStatus> all;
    for (const Outcome& outcome : outcomes_.all) {
      EXPECT_TRUE(all.emplace(outcome.action.value(), outcome.status).second) << "reported twice";
    }
    return all;
  }

  LaneEngine engine_;
  CountedOutcomes outcomes_;
  CountedWaker waker_;
  Worker worker_;
  std::vector<Executor*> executors_;
};

class FourLanesTest : public WorkerLanesTest {
 protected:
  FourLanesTest() : WorkerLanesTest(4) {}
};

TEST_F(WorkerLanesTest, TwoLanesRunTwoExecsAtOnce) {
  infer(1, kLeft);
  infer(2, kRight);
  EXPECT_EQ(begin(0, at(0)), 1u);
  EXPECT_EQ(begin(1, at(0)), 2u);
  end(1, at(0), at(2));
  end(0, at(0), at(3));
  EXPECT_THAT(statuses(), UnorderedElementsAre(std::pair(1, OutcomeStatus::kDone), std::pair(2, OutcomeStatus::kDone)));
}

TEST_F(WorkerLanesTest, AWideExecWaitsForAllItsLanes) {
  infer(1, kRight);
  EXPECT_EQ(begin(1, at(0)), 1u);
  infer(2, kBoth);
  infer(3, kLeft);
  infer(4, kRight);
  EXPECT_EQ(begin(0, at(1)), 0u) << "lane 1 is busy, and 3 comes after 2";
  end(1, at(0), at(5));
  EXPECT_EQ(begin(1, at(5)), 0u) << "offers its lane";
  EXPECT_EQ(begin(0, at(5)), 2u);
  EXPECT_EQ(begin(1, at(6)), 0u) << "its lane is taken";
  end(0, at(5), at(8));
  EXPECT_EQ(begin(1, at(8)), 4u);
  EXPECT_EQ(begin(0, at(8)), 3u);
}

// Else leader and lanes that are offered would wake each other until the last lane is free.
TEST_F(FourLanesTest, ALaneThatIsOfferedIsNotWokenInVain) {
  infer(1, {3, 1});
  EXPECT_EQ(begin(3, at(0)), 1u);
  infer(2, {0, 4});
  EXPECT_EQ(begin(1, at(1)), 0u);
  const int wakes = waker_.wakes;
  EXPECT_EQ(begin(0, at(1)), 0u) << "lane 3 is busy";
  EXPECT_EQ(waker_.wakes, wakes);
}

TEST_F(WorkerLanesTest, ALaneThatIsOfferedTakesWhatComesFirst) {
  infer(1, kBoth, at(2));
  EXPECT_EQ(begin(1, at(3)), 0u) << "offers its lane";
  infer(2, kRight, at(1));
  EXPECT_EQ(begin(1, at(3)), 2u);
  EXPECT_EQ(begin(0, at(3)), 0u) << "the offer was withdrawn";
  end(1, at(3), at(4));
  EXPECT_EQ(begin(1, at(4)), 0u);
  EXPECT_EQ(begin(0, at(4)), 1u);
}

TEST_F(WorkerLanesTest, AWideExecThatIsTooLateIsReportedOnceAllItsLanesGaveItUp) {
  infer(1, kRight);
  EXPECT_EQ(begin(1, at(0)), 1u);
  infer(2, kBoth, at(0), at(3));
  infer(3, kLeft);
  EXPECT_EQ(lane(0).poll(at(1)).wake, at(3) + Duration::nanoseconds(1)) << "when its window is over";
  EXPECT_EQ(begin(0, at(4)), 3u) << "waits no longer";
  EXPECT_TRUE(statuses().empty()) << "it is in the queue of lane 1 still";
  end(1, at(0), at(6));
  EXPECT_EQ(begin(1, at(6)), 0u);
  EXPECT_EQ(statuses().at(2), OutcomeStatus::kTooLate);
  end(0, at(4), at(7));
  EXPECT_EQ(statuses().size(), 3u);
  EXPECT_EQ(worker_.input().io_bytes_free(), kIoBytes);
}

TEST_F(WorkerLanesTest, AnOfferEndsWithTheWindow) {
  infer(1, kLeft);
  EXPECT_EQ(begin(0, at(0)), 1u);
  infer(2, kBoth, at(0), at(3));
  EXPECT_EQ(lane(1).poll(at(1)).wake, at(3) + Duration::nanoseconds(1));
  EXPECT_EQ(begin(1, at(4)), 0u);
  infer(3, kRight);
  EXPECT_EQ(begin(1, at(4)), 3u);
  end(0, at(0), at(5));
  EXPECT_EQ(begin(0, at(5)), 0u);
  EXPECT_EQ(statuses().at(2), OutcomeStatus::kTooLate);
}

TEST_F(WorkerLanesTest, AWideExecOfAModelThatIsNotLoadedGivesItsLanesBack) {
  worker_.send({.id = ActionId(9), .type = ActionType::kUnload, .model = ModelId(0), .latest = at(1000)});
  poll_all(*executors_[0]);
  infer(1, kBoth);
  EXPECT_EQ(begin(1, at(0)), 0u);
  EXPECT_EQ(begin(0, at(0)), 0u);
  EXPECT_EQ(statuses().at(1), OutcomeStatus::kNotLoaded);
  infer(2, kRight);
  EXPECT_EQ(begin(1, at(0)), 0u);
  EXPECT_EQ(statuses().at(2), OutcomeStatus::kNotLoaded);
}

TEST_F(WorkerLanesTest, AnUnloadUnderAnyOfTwoExecsIsRefused) {
  infer(1, kLeft);
  infer(2, kRight);
  begin(0, at(0));
  begin(1, at(0));
  end(0, at(0), at(1));
  worker_.send({.id = ActionId(9), .type = ActionType::kUnload, .model = ModelId(0), .latest = at(1000)});
  poll_all(*executors_[0]);
  EXPECT_EQ(statuses().at(9), OutcomeStatus::kBusy);
}

TEST_F(WorkerLanesTest, LanesThatTheDeviceLacksAreRefused) {
  infer(1, {1, 2});
  infer(2, {2, 1});
  EXPECT_EQ(statuses().at(1), OutcomeStatus::kUnknownModel);
  EXPECT_EQ(statuses().at(2), OutcomeStatus::kUnknownModel);
}

// Each executor on a thread of its own, INFERs of all intervals at once: none is lost, none
// waits for another for ever, no lane runs two.
TEST_F(FourLanesTest, ThreadsAgree) {
  constexpr uint64_t kInfers = 20'000;
  constexpr std::array<LaneInterval, 7> kIntervals{{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {0, 2}, {2, 2}, {0, 4}}};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (size_t i = 1; i < executors_.size(); ++i) {
    threads.emplace_back([&stop, executor = executors_[i]] {
      while (!stop.load()) {
        if (executor->poll(at(0)).run) {
          executor->finish(at(0), at(0), executor->perform());
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  Random random(7);
  uint64_t sent = 0;
  while (outcomes_.count.load() < kInfers) {
    if (sent == kInfers || sent - outcomes_.count.load() >= 20) {
      std::this_thread::yield();
      continue;
    }
    Action action{.id = ActionId(sent),
                  .type = ActionType::kInfer,
                  .model = ModelId(0),
                  .earliest = at(-static_cast<int64_t>(random.below(3))),
                  .latest = at(1000),
                  .batch_size = 1,
                  .lanes = kIntervals[random.below(kIntervals.size())]};
    action.rows.add({RequestId(sent), PayloadHandle(sent)});
    worker_.send(action);
    ++sent;
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine_.outputs.load(), static_cast<int>(kInfers));
}

TEST(LaneClaimsTest, TheLeaderTakesAllOrNone) {
  LaneClaims claims;
  claims.offer(1, 5);
  claims.offer(3, 5);
  EXPECT_EQ(claims.take_all({0, 4}, 5), 0u) << "lane 2 is not offered";
  EXPECT_EQ(claims.state(1), LaneClaims::State::kOffered);
  claims.offer(2, 6);
  EXPECT_EQ(claims.take_all({0, 4}, 5), 0u) << "lane 2 is offered to another";
  ASSERT_TRUE(claims.withdraw(2));
  claims.offer(2, 5);
  EXPECT_EQ(claims.take_all({0, 4}, 5), 3u);
  for (uint32_t lane = 1; lane < 4; ++lane) EXPECT_FALSE(claims.withdraw(lane));
  claims.give_back(2);
  EXPECT_EQ(claims.state(2), LaneClaims::State::kGivenBack);
  claims.reset(2);
  EXPECT_EQ(claims.state(2), LaneClaims::State::kFree);
  EXPECT_EQ(claims.state(3), LaneClaims::State::kTaken);
}

}  // namespace
}  // namespace foliot
