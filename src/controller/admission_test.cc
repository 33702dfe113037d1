#include "controller/admission.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace foliot {
namespace {

TimePoint at(double ms) { return TimePoint() + Duration::from_milliseconds(ms); }
Duration ms(double n) { return Duration::from_milliseconds(n); }

TEST(BacklogTest, SumsWhatIsDueByADeadline) {
  Backlog backlog;
  const auto first = backlog.add(at(10), ms(3), at(0));
  backlog.add(at(20), ms(5), at(0));
  backlog.add(at(1e6), ms(100), at(0));  // far away: in nobody's way
  EXPECT_EQ(backlog.due_by(at(9), at(0)), Duration());
  EXPECT_EQ(backlog.due_by(at(10.9), at(0)), ms(3));
  EXPECT_EQ(backlog.due_by(at(500), at(0)), ms(8));
  backlog.remove(first);
  EXPECT_EQ(backlog.due_by(at(500), at(0)), ms(5));
}

// Over minutes, so that the ring turns many times; against a plain map.
TEST(BacklogTest, AgreesWithAPlainSumForAsLongAsYouLike) {
  Backlog backlog;
  Random random(1);
  std::multimap<int64_t, std::pair<Backlog::Ticket, Duration>> plain;
  double now = 0;
  for (int step = 0; step < 100'000; ++step) {
    now += 3 * random.exponential();
    const double deadline = now + random.uniform() * 1000;
    const Duration work = Duration::nanoseconds(static_cast<int64_t>(random.below(1'000'000)));
    plain.emplace(static_cast<int64_t>(deadline), std::pair(backlog.add(at(deadline), work, at(now)), work));
    while (plain.begin()->first < static_cast<int64_t>(now)) {
      backlog.remove(plain.begin()->second.first);
      plain.erase(plain.begin());
    }
    if (step % 100 == 0) {
      const double asked = now + random.uniform() * 1000;
      Duration expected;
      for (const auto& [slice, entry] : plain) {
        if (slice <= static_cast<int64_t>(asked)) expected += entry.second;
      }
      ASSERT_EQ(backlog.due_by(at(asked), at(now)), expected) << step;
    }
  }
}

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() : admission_(cluster_) {
    auto model = std::make_shared<ModelInfo>();
    model->batch_sizes = {1, 4};
    model->pages = 1;
    model->seed_load = ms(20);
    model->buckets = {{.dimensions = {}, .seed_exec = {ms(4), ms(8)}}};
    cluster_.deadline_margin = ms(1);
    cluster_.devices.emplace_back(DeviceId(0), 1);
    cluster_.estimator.add_device();
    cluster_.estimator.add_model(*model);
    cluster_.models.push_back(model);
  }

  void load() {
    cluster_.devices[0].sent_load(ActionId(1), ModelId(0), 1, at(0), ms(20), at(0));
    cluster_.devices[0].load_over(ActionId(1), ModelId(0), 1, true, at(0));
  }

  Refusal decide(double slo) { return admission_.decide(request(slo), at(0)).refusal; }
  static Request request(double slo) { return {.id = RequestId(1), .deadline = at(slo)}; }

  Cluster cluster_;
  Admission admission_;
};

TEST_F(AdmissionTest, AColdModelNeedsItsLoadToo) {
  EXPECT_EQ(decide(24.9), Refusal::kUnmeetable);
  EXPECT_TRUE(admission_.decide(request(24.9), at(0)).missed);
  EXPECT_EQ(decide(25), Refusal::kNone);
  load();
  EXPECT_EQ(decide(4.9), Refusal::kUnmeetable);
  EXPECT_FALSE(admission_.decide(request(4.9), at(0)).missed);
  EXPECT_EQ(decide(5), Refusal::kNone);
}

TEST_F(AdmissionTest, WhatIsDueBeforeCountsAndWhatIsDueLaterDoesNot) {
  load();
  // A lane counts as the batches that it fills: five rows as four and one.
  const auto first = admission_.enqueued(request(50), at(0));
  EXPECT_EQ(admission_.decide(request(60), at(0)).earliest_completion, at(4 * 1.1 + 5));
  EXPECT_EQ(admission_.decide(request(40), at(0)).earliest_completion, at(5));
  for (int i = 0; i < 3; ++i) admission_.enqueued(request(50), at(0));
  EXPECT_EQ(admission_.decide(request(60), at(0)).earliest_completion, at(8 * 1.1 + 5));
  EXPECT_EQ(decide(51), Refusal::kNone);
  admission_.dequeued(request(50), first);
  EXPECT_EQ(admission_.decide(request(60), at(0)).earliest_completion, at(4 * 1.1 + 5));
  for (int i = 0; i < 40; ++i) admission_.enqueued(request(50), at(0));
  EXPECT_EQ(decide(51), Refusal::kOverload);
}

TEST_F(AdmissionTest, BestEffortIsAlwaysAdmitted) {
  EXPECT_EQ(admission_.decide({.id = RequestId(1)}, at(0)).refusal, Refusal::kNone);
}

}  // namespace
}  // namespace foliot
