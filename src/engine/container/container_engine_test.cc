#include "engine/container/container_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/container/container_profile.h"
#include "engine/container/test_container.h"
#include "engine/worker/conformance/engine_conformance.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

std::unique_ptr<ContainerProcess> process_of(const std::string& behaviour, uint64_t memory_bytes) {
  auto process = ContainerProcess::start(test_container(behaviour), [](std::string_view) {});
  FOLIOT_CHECK(process.ok());
  FOLIOT_CHECK((*process)->share_memory(memory_bytes).ok());
  return std::move(process).value();
}

EngineModel model_of(const ContainerProcess& process, ModelId id, std::vector<uint32_t> sizes = {1, 4}) {
  const std::vector<Duration> durations(sizes.size(), Duration::milliseconds(1));
  ModelInfo info = container_model(process.description(), "container:test", std::move(sizes), durations);
  info.id = id;
  info.name = "test";
  return {std::make_shared<const ModelInfo>(std::move(info))};
}

// Both variants compute the same, which is the process's.
class ContainerSubject : public EngineSubject {
 public:
  explicit ContainerSubject(PayloadStore& payloads)
      : process_(process_of("computes", kIoCacheBytes)), engine_(*process_, payloads, kModelsMax) {}
  Engine& engine() override { return engine_; }
  EngineModel model(ModelId id, uint32_t /*variant*/) override { return model_of(*process_, id); }
  bool compute(const EngineModel& /*model*/, const Action& /*action*/, std::span<const std::byte> input,
               std::span<std::byte> output) override {
    std::array<float, kTestRowFloats> numbers{};
    FOLIOT_CHECK(input.size() == sizeof(numbers) && output.size() == sizeof(numbers));
    std::memcpy(numbers.data(), input.data(), sizeof(numbers));
    for (float& number : numbers) number = 2 * number + 1;
    std::memcpy(output.data(), numbers.data(), sizeof(numbers));
    return true;
  }

 private:
  std::unique_ptr<ContainerProcess> process_;
  ContainerEngine engine_;
};

INSTANTIATE_TEST_SUITE_P(Container, EngineConformance,
                         testing::Values(EngineCase{"Container", [](PayloadStore& payloads) {
                                                      return std::make_unique<ContainerSubject>(payloads);
                                                    }}));

// With the reasons why rows failed.
class FailingRows : public PayloadRows {
 public:
  void fail(PayloadHandle payload, std::string_view reason) override { reasons[payload] = reason; }

  std::map<PayloadHandle, std::string> reasons;
};

class ContainerEngineTest : public testing::Test {
 protected:
  void start(const std::string& behaviour) {
    process_ = process_of(behaviour, 64 << 10);
    engine_ = std::make_unique<ContainerEngine>(*process_, payloads_, 4,
                                                ContainerTimeouts{.factor = 4, .reserve = Duration::milliseconds(1)});
    ASSERT_TRUE(engine_->add(model_of(*process_, ModelId(0))).ok());
  }
  InferWork work(Duration expected) {
    InferWork result;
    result.action = {.model = ModelId(0), .expected = expected, .batch_size = 1};
    result.output_offset = 4096;
    result.action.rows.add({RequestId(1), payloads_.add(std::vector<std::byte>(20), 20)});
    return result;
  }

  FailingRows payloads_;
  std::unique_ptr<ContainerProcess> process_;
  std::unique_ptr<ContainerEngine> engine_;
};

TEST_F(ContainerEngineTest, OtherModelsAreRefused) {
  start("computes");
  EXPECT_EQ(engine_->add(model_of(*process_, ModelId(1), {1, 8})).status().code(), StatusCode::kInvalidArgument);
  ModelInfo other = *model_of(*process_, ModelId(1)).info;
  other.inputs[0].shape = {6};
  EXPECT_EQ(engine_->add({std::make_shared<const ModelInfo>(other)}).status().code(), StatusCode::kInvalidArgument);
  other = *model_of(*process_, ModelId(1)).info;
  other.outputs.clear();
  EXPECT_EQ(engine_->add({std::make_shared<const ModelInfo>(other)}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ContainerEngineTest, AnExecThatTakesFarTooLongIsKilled) {
  start("hangs");
  const InferWork infer = work(Duration::microseconds(10));
  engine_->input(infer);
  EXPECT_EQ(engine_->run(infer).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(process_->alive());
}

// Its reserve would last for hours.
TEST_F(ContainerEngineTest, AnExecThatHangsIsKilledAtItsDeadline) {
  process_ = process_of("hangs", 64 << 10);
  ContainerEngine engine(*process_, payloads_, 4,
                         {.factor = 0, .late_reserve = Duration(), .reserve = Duration::seconds(36'000)});
  ASSERT_TRUE(engine.add(model_of(*process_, ModelId(0))).ok());
  InferWork infer = work(Duration::microseconds(10));
  infer.action.latest = monotonic_now() + Duration::milliseconds(30);
  engine.input(infer);
  EXPECT_EQ(engine.run(infer).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(process_->was_late());
  EXPECT_FALSE(process_->alive());
}

TEST_F(ContainerEngineTest, AnExecThatFailsIsFollowedByOthers) {
  start("fails every other call");
  const InferWork infer = work(Duration::seconds(10));
  engine_->input(infer);
  EXPECT_EQ(engine_->run(infer).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(engine_->run(infer).ok());
}

TEST(ContainerEngineFlagsTest, AnyByteButZeroIsTrue) {
  const auto process = process_of("has flags", 4096);
  PayloadRows payloads;
  ContainerEngine engine(*process, payloads, 1);
  ASSERT_TRUE(engine.add(model_of(*process, ModelId(0))).ok());
  InferWork infer;
  infer.action = {.model = ModelId(0), .expected = Duration::seconds(10), .batch_size = 1};
  infer.output_offset = 1024;
  const PayloadHandle row = payloads.add({std::byte{0}, std::byte{1}, std::byte{2}, std::byte{255}, std::byte{0}}, 5);
  infer.action.rows.add({RequestId(1), row});
  engine.input(infer);
  ASSERT_TRUE(engine.run(infer).ok());
  engine.output(infer);
  EXPECT_TRUE(std::ranges::equal(payloads.output(row, 0),
                                 std::vector{std::byte{0}, std::byte{1}, std::byte{1}, std::byte{1}, std::byte{0}}));
}

TEST_F(ContainerEngineTest, NotesTheRowsThatTheCodeFailedOn) {
  start("fails on the second row");
  InferWork infer = work(Duration::seconds(10));
  infer.action.batch_size = 4;
  for (uint64_t id = 2; id <= 3; ++id) {
    infer.action.rows.add({RequestId(id), payloads_.add(std::vector<std::byte>(20), 20)});
  }
  RowSet failed;
  infer.failed_rows = &failed;
  engine_->input(infer);
  EXPECT_TRUE(engine_->run(infer).ok());
  EXPECT_EQ(failed, RowSet(0b010));
  EXPECT_EQ(payloads_.reasons, (std::map<PayloadHandle, std::string>{{infer.action.rows[1].payload, "two\\x0a"}}));
}

TEST_F(ContainerEngineTest, ARowThatFailsAloneHasItsReason) {
  start("fails every other call");
  InferWork infer = work(Duration::seconds(10));
  engine_->input(infer);
  EXPECT_EQ(engine_->run(infer).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(payloads_.reasons,
            (std::map<PayloadHandle, std::string>{{infer.action.rows[0].payload, "ValueError: \\x1b[2J"}}));
}

TEST_F(ContainerEngineTest, WhatIsSaidOfSeveralRowsIsTheReasonOfNone) {
  start("fails every other call");
  InferWork infer = work(Duration::seconds(10));
  infer.action.rows.add({RequestId(2), payloads_.add(std::vector<std::byte>(20), 20)});
  engine_->input(infer);
  EXPECT_EQ(engine_->run(infer).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(payloads_.reasons.empty());
}

// A row of BYTES [] with up to 12 bytes.
std::vector<std::byte> text_row(std::string_view text) {
  std::vector<std::byte> row(16);
  const auto length = static_cast<uint32_t>(text.size());
  std::memcpy(row.data(), &length, sizeof(length));
  std::memcpy(row.data() + sizeof(length), text.data(), text.size());
  return row;
}

TEST_F(ContainerEngineTest, StringsArriveAndWhatGoesBeyondItsBoundHasFailed) {
  start("has strings");
  InferWork infer{};
  infer.action = {.model = ModelId(0), .expected = Duration::seconds(10), .batch_size = 4};
  infer.output_offset = 4096;
  for (const std::string_view text : {"one", "", "! is longer", "twelve bytes"}) {
    infer.action.rows.add({RequestId(1), payloads_.add(text_row(text), 16)});
  }
  RowSet failed;
  infer.failed_rows = &failed;
  engine_->input(infer);
  ASSERT_TRUE(engine_->run(infer).ok());
  engine_->output(infer);
  const auto output = [&](uint32_t row) {
    const std::span<std::byte> bytes = payloads_.output(infer.action.rows[row].payload, 0);
    const auto in_use = static_cast<std::ptrdiff_t>(4 + std::to_integer<size_t>(bytes[0]));
    std::vector<std::byte> given(bytes.begin(), bytes.begin() + in_use);
    given.resize(bytes.size());
    return given;
  };
  EXPECT_EQ(output(0), text_row("one"));
  EXPECT_EQ(output(1), text_row(""));
  EXPECT_EQ(output(2), text_row(""));
  EXPECT_EQ(output(3), text_row("twelve bytes"));
  EXPECT_EQ(failed, RowSet(0b0100));
  EXPECT_EQ(payloads_.reasons.size(), 1u);
  EXPECT_TRUE(payloads_.reasons.contains(infer.action.rows[2].payload));
  EXPECT_TRUE(payloads_.finished(infer.action.rows[2].payload).empty());
}

TEST_F(ContainerEngineTest, AListOfFailedRowsThatIsTooShortEndsTheProcess) {
  start("fails on rows that there are not");
  InferWork infer = work(Duration::seconds(10));
  infer.action.batch_size = 4;
  infer.action.rows.add({RequestId(2), payloads_.add(std::vector<std::byte>(20), 20)});
  engine_->input(infer);
  EXPECT_EQ(engine_->run(infer).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(process_->alive());
}

// Of a batch that takes so long and has its deadline so long after it begins.
Duration timeout_of(Duration expected, Duration time, const ContainerTimeouts& timeouts = {}) {
  const TimePoint now = TimePoint() + Duration::seconds(50);
  Action action;
  action.expected = expected;
  action.latest = time == Duration::max() ? TimePoint::infinite_future() : now + time - expected;
  return timeouts.of(action, now);
}

TEST(ContainerTimeoutsTest, WithoutADeadlineAreAMultipleOfWhatIsExpectedAndAReserve) {
  EXPECT_EQ(timeout_of(Duration::milliseconds(500), Duration::max()), Duration::seconds(3));
}

TEST(ContainerTimeoutsTest, EndAtTheDeadlineOfWhatWaits) {
  const Duration expected = Duration::milliseconds(2);
  EXPECT_EQ(timeout_of(expected, Duration::milliseconds(700)), Duration::milliseconds(700));
  EXPECT_EQ(timeout_of(expected, Duration::milliseconds(110)), Duration::milliseconds(110));
  EXPECT_EQ(timeout_of(expected, Duration::seconds(60)), Duration::milliseconds(1008)) << "as without one";
}

TEST(ContainerTimeoutsTest, LeaveWhatIsOnlySlowSomeTime) {
  const Duration expected = Duration::milliseconds(20);
  EXPECT_EQ(timeout_of(expected, Duration::milliseconds(30)), Duration::milliseconds(180));
  for (const uint32_t kills : {0u, 2u, 7u, 8u, 10u}) {
    EXPECT_EQ(timeout_of(expected, Duration::milliseconds(30), ContainerTimeouts::after(kills)),
              Duration::milliseconds(180));
  }
  for (const uint32_t kills : {1u, 9u}) {
    EXPECT_EQ(timeout_of(expected, Duration::milliseconds(30), ContainerTimeouts::after(kills)),
              Duration::milliseconds(1080));
  }
}

TEST(ContainerModelTest, MemoryHoldsTheLargestBatches) {
  const auto process = process_of("computes", 4096);
  EXPECT_EQ(container_memory_bytes(process->description(), 3), 3u * 2 * 128);
}

TEST(ContainerProfileTest, BatchSizesDouble) {
  ContainerDescription description;
  description.batch_size_max = 1;
  EXPECT_EQ(container_batch_sizes(description), (std::vector<uint32_t>{1}));
  description.batch_size_max = 6;
  EXPECT_EQ(container_batch_sizes(description), (std::vector<uint32_t>{1, 2, 4, 6}));
  description.batch_size_max = 8;
  EXPECT_EQ(container_batch_sizes(description), (std::vector<uint32_t>{1, 2, 4, 8}));
}

TEST(ContainerProfileTest, EachBatchSizeHasADurationThatDoesNotShrink) {
  const auto process = process_of("prints a lot", 4096);
  const std::vector<uint32_t> sizes{1, 2, 4};
  const auto durations = profile(*process, sizes, {.calls = 3});
  ASSERT_TRUE(durations.ok()) << durations.status().message();
  ASSERT_EQ(durations->size(), 3u);
  EXPECT_GT((*durations)[0], Duration());
  EXPECT_TRUE(std::ranges::is_sorted(*durations));
}

TEST(ContainerProfileTest, ACallThatFailsIsNamed) {
  const auto process = process_of("fails every other call", 4096);
  const std::vector<uint32_t> sizes{2};
  const auto durations = profile(*process, sizes);
  EXPECT_EQ(durations.status().code(), StatusCode::kInternal);
  EXPECT_NE(durations.status().message().find("a batch of 2 rows: ValueError"), std::string::npos);
}

TEST(ContainerProfileTest, CanBeCancelled) {
  const auto process = process_of("computes", 4096);
  const std::vector<uint32_t> sizes{1};
  EXPECT_EQ(profile(*process, sizes, {.cancelled = [] { return true; }}).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace foliot
