// InferenceConformance: the suite that every Inference passes. The tests are in this
// header: the test of an implementation includes it and instantiates it,
//
//   INSTANTIATE_TEST_SUITE_P(Fake, InferenceConformance, testing::Values(InferenceCase{"Fake", &make_fake}));
//
// where make_fake() makes an InferenceHarness around one.
#ifndef FOLIOT_ANSWER_INFERENCE_CONFORMANCE_INFERENCE_CONFORMANCE_H_
#define FOLIOT_ANSWER_INFERENCE_CONFORMANCE_INFERENCE_CONFORMANCE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "answer/inference/conformance/test_models.h"
#include "answer/inference/inference.h"
#include "foundation/base/mutex.h"
#include "foundation/base/time.h"
#include "foundation/core/catalog.h"
#include "foundation/core/request.h"

namespace foliot {

// An Inference and what tests do to it. It serves what put_conformance_models() lists.
class InferenceHarness {
 public:
  virtual ~InferenceHarness() = default;
  virtual Inference& inference() = 0;
  // The clock by which it settles answers, and time that passes on it.
  virtual TimePoint now() = 0;
  virtual void advance(Duration duration) = 0;
  // No call is answered, unless it is cancelled, until release().
  virtual void hold() = 0;
  virtual void release() = 0;
  // Every call from now on is refused so; kNone: served.
  virtual void refuse(Refusal refusal, const std::string& detail) = 0;
};

// `doubling` in version 1 (test_models.h), and `loading`, which is not ready.
inline void put_conformance_models(Catalog& catalog) {
  const ModelInfo model = doubling_model(ModelId(1));
  catalog.put({.name = model.name,
               .version = model.version,
               .state = ModelState::kReady,
               .reason = "",
               .info = std::make_shared<const ModelInfo>(model)});
  catalog.put({.name = "loading", .version = "1", .state = ModelState::kLoading, .reason = "", .info = nullptr});
  catalog.set_ready();
}

// A client of an Inference, with a thread of its own: the one that uses it.
class ConformanceClient : public AnswerSink {
 public:
  explicit ConformanceClient(Inference& inference) : inference_(inference) {}

  // Two rows of `doubling`, from `first` on.
  Query doubling_query(TimePoint now, float first = 1) {
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = first + static_cast<float>(i);
    return {.name = "doubling",
            .id = "seven",
            .arrival = now,
            .inputs = {{"x", "FP32", {2, 2}, std::as_bytes(std::span(numbers_))}}};
  }
  Inference::Started start(const Query& query) { return inference_.start(query, {nullptr, mailbox_, *this}); }
  // The call; REQUIRES that it began.
  CallId started(const Query& query) {
    const Inference::Started started = start(query);
    const auto* error = std::get_if<CallError>(&started);
    EXPECT_EQ(error, nullptr) << error->message;
    return error == nullptr ? std::get<CallId>(started) : CallId();
  }
  // The error of a call that did not begin.
  CallError error_of(const Query& query) {
    Inference::Started started = start(query);
    auto* error = std::get_if<CallError>(&started);
    EXPECT_NE(error, nullptr);
    return error == nullptr ? CallError() : std::move(*error);
  }

  // Until so many answers came in all.
  void await(size_t count) {
    while (answers_.size() < count) {
      {
        MutexLock lock(mutex_);
        changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return std::exchange(awake_, false); });
      }
      mailbox_.deliver();
    }
  }
  // What came meanwhile.
  void deliver() { mailbox_.deliver(); }
  size_t count() const { return answers_.size(); }
  Answer& answer(CallId call) { return *answers_.at(call); }
  void forget() { answers_.clear(); }

  void on_answer(CallId call, std::unique_ptr<Answer> answer) override {
    EXPECT_EQ(std::this_thread::get_id(), thread_) << "answers come on the mailbox's thread";
    EXPECT_TRUE(answers_.emplace(call, std::move(answer)).second) << "a call is answered once";
  }

 private:
  Inference& inference_;
  std::vector<float> numbers_ = std::vector<float>(4);
  const std::thread::id thread_ = std::this_thread::get_id();
  Mutex mutex_;
  Condition changed_;
  bool awake_ GUARDED_BY(mutex_) = false;
  Mailbox mailbox_{64, [this] {
                     {
                       MutexLock lock(mutex_);
                       awake_ = true;
                     }
                     changed_.notify_one();
                   }};
  std::map<CallId, std::unique_ptr<Answer>> answers_;
};

struct InferenceCase {
  const char* name;
  std::unique_ptr<InferenceHarness> (*make)();
};
inline void PrintTo(const InferenceCase& value, std::ostream* out) { *out << value.name; }

class InferenceConformance : public testing::TestWithParam<InferenceCase> {
 protected:
  Query query() { return client_.doubling_query(harness_->now()); }
  static std::vector<float> floats_of(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const std::unique_ptr<InferenceHarness> harness_ = GetParam().make();
  Inference& inference_ = harness_->inference();
  ConformanceClient client_{inference_};
};

TEST_P(InferenceConformance, AnswersWithOutputs) {
  const CallId call = client_.started(query());
  client_.await(1);
  Answer& answer = client_.answer(call);
  ASSERT_TRUE(answer.served());
  EXPECT_EQ(answer.name(), "doubling");
  EXPECT_EQ(answer.version(), "1");
  EXPECT_EQ(answer.id(), "seven");
  EXPECT_EQ(answer.quality(), Quality::kComplete);
  ASSERT_EQ(answer.output_count(), 1u);
  EXPECT_EQ(answer.output_spec(0).name, "y");
  EXPECT_EQ(answer.output_shape(0), (Shape{2, 2}));
  EXPECT_EQ(floats_of(answer.take_output(0)), (std::vector<float>{2, 4, 6, 8}));
  answer.settle();
  EXPECT_TRUE(answer.served());
}

TEST_P(InferenceConformance, AnswersOnceAndNeverWithinStart) {
  const CallId first = client_.started(query());
  EXPECT_EQ(client_.count(), 0u);
  client_.await(1);
  const CallId second = client_.started(query());
  EXPECT_NE(first, second);
  client_.await(2);
  client_.deliver();
  EXPECT_EQ(client_.count(), 2u);
}

TEST_P(InferenceConformance, TheVersionThatIsServedMayBeNamed) {
  Query named = query();
  named.version = "1";
  const CallId call = client_.started(named);
  client_.await(1);
  EXPECT_TRUE(client_.answer(call).served());
}

TEST_P(InferenceConformance, UnknownNamesAndVersionsAreErrors) {
  Query wrong = query();
  wrong.name = "nothing";
  CallError error = client_.error_of(wrong);
  EXPECT_EQ(error.http_status, 404u);
  EXPECT_EQ(error.grpc_code, GrpcCode::kNotFound);
  EXPECT_EQ(error.message, "unknown model 'nothing'");
  wrong.name = "doubling";
  wrong.version = "2";
  error = client_.error_of(wrong);
  EXPECT_EQ(error.http_status, 404u);
  EXPECT_EQ(error.message, "model 'doubling' has no version '2'; version '1' is served");
  wrong.name = "loading";
  wrong.version = "";
  error = client_.error_of(wrong);
  EXPECT_EQ(error.http_status, 503u);
  EXPECT_TRUE(error.retry_after.has_value());
  EXPECT_EQ(error.message, "model 'loading' is not ready: LOADING");
  client_.deliver();
  EXPECT_EQ(client_.count(), 0u) << "the error was the answer";
}

TEST_P(InferenceConformance, WrongInputsAndOutputsAreErrorsThatNameThem) {
  const auto expect_error = [&](const Query& wrong, const std::string& named) {
    const CallError error = client_.error_of(wrong);
    EXPECT_EQ(error.http_status, 400u);
    EXPECT_EQ(error.grpc_code, GrpcCode::kInvalidArgument);
    EXPECT_THAT(error.message, testing::AllOf(testing::HasSubstr("model 'doubling'"), testing::HasSubstr(named)));
  };
  Query wrong = query();
  wrong.inputs[0].name = "z";
  expect_error(wrong, "'z'");
  wrong = query();
  wrong.inputs.clear();
  expect_error(wrong, "'x'");
  wrong = query();
  wrong.inputs[0].datatype = "INT8";
  expect_error(wrong, "'x'");
  wrong = query();
  wrong.inputs[0].shape = {2, 3};
  expect_error(wrong, "'x'");
  wrong = query();
  wrong.inputs[0].bytes = wrong.inputs[0].bytes.first(12);
  expect_error(wrong, "'x'");
  wrong = query();
  wrong.outputs = {"w"};
  expect_error(wrong, "'w'");
  client_.deliver();
  EXPECT_EQ(client_.count(), 0u);
}

TEST_P(InferenceConformance, ADeadlineThatHasPassedIsARefusal) {
  Query late = query();
  late.deadline = late.arrival - Duration::milliseconds(1);
  std::optional<CallError> error;
  Inference::Started started = client_.start(late);
  if (auto* at_once = std::get_if<CallError>(&started)) {
    error = std::move(*at_once);
  } else {
    client_.await(1);
    Answer& answer = client_.answer(std::get<CallId>(started));
    answer.settle();
    ASSERT_FALSE(answer.served());
    error = answer.error();
  }
  EXPECT_THAT(error->reason, testing::AnyOf("unmeetable", "expired", "late"));
}

TEST_P(InferenceConformance, AnAnswerThatLeavesLateIsRefused) {
  Query query = this->query();
  query.deadline = query.arrival + Duration::seconds(3600);
  const CallId in_time = client_.started(query);
  const CallId late = client_.started(query);
  client_.await(2);
  client_.answer(in_time).settle();
  EXPECT_TRUE(client_.answer(in_time).served());
  harness_->advance(Duration::seconds(3601));
  EXPECT_TRUE(client_.answer(late).served()) << "until it is settled";
  client_.answer(late).settle();
  ASSERT_FALSE(client_.answer(late).served());
  EXPECT_EQ(client_.answer(late).error().reason, "late");
}

TEST_P(InferenceConformance, RefusalsAreCarriedWhole) {
  for (int i = 1; i <= static_cast<int>(kRefusalLast); ++i) {
    const auto refusal = static_cast<Refusal>(i);
    harness_->refuse(refusal, "three ahead");
    const CallId call = client_.started(query());
    client_.await(1);
    Answer& answer = client_.answer(call);
    answer.settle();
    ASSERT_FALSE(answer.served());
    const CallError error = answer.error();
    const CallError expected = call_error(refusal, "doubling", "three ahead", {}, {}, {});
    EXPECT_EQ(error.http_status, expected.http_status);
    EXPECT_EQ(error.grpc_code, expected.grpc_code);
    EXPECT_EQ(error.reason, to_string(refusal));
    EXPECT_EQ(error.retry_after.has_value(), expected.retry_after.has_value());
    EXPECT_EQ(error.request, answer.number());
    EXPECT_THAT(error.message, testing::StartsWith(expected.message));
    client_.forget();
  }
}

TEST_P(InferenceConformance, CancellingTwiceIsCancellingOnce) {
  harness_->hold();
  const CallId cancelled = client_.started(query());
  const CallId other = client_.started(query());
  inference_.cancel(cancelled);
  inference_.cancel(cancelled);
  client_.await(1);
  client_.answer(cancelled).settle();
  ASSERT_FALSE(client_.answer(cancelled).served());
  EXPECT_EQ(client_.answer(cancelled).error().reason, "cancelled");
  harness_->release();
  client_.await(2);
  EXPECT_TRUE(client_.answer(other).served()) << "only the one that was meant";
  inference_.cancel(cancelled);
  inference_.cancel(other);
  client_.forget();
  inference_.cancel(other);
  inference_.cancel(CallId());
  inference_.cancel(CallId(UINT64_MAX));
  client_.deliver();
  EXPECT_EQ(client_.count(), 0u);
}

TEST_P(InferenceConformance, TwoThreadsGetTheirOwnAnswers) {
  constexpr size_t kCalls = 32;
  Mutex mutex;
  std::set<CallId> all;
  const auto run = [&](float first) {
    ConformanceClient client(inference_);
    for (size_t i = 0; i < kCalls; ++i) {
      const CallId call = client.started(client.doubling_query(harness_->now(), first));
      client.await(1);
      Answer& answer = client.answer(call);
      answer.settle();
      ASSERT_TRUE(answer.served());
      EXPECT_EQ(floats_of(answer.take_output(0)).front(), 2 * first);
      client.forget();
      const MutexLock lock(mutex);
      all.insert(call);
    }
  };
  std::thread one(run, 10.0F);
  std::thread two(run, 20.0F);
  one.join();
  two.join();
  EXPECT_EQ(all.size(), 2 * kCalls) << "no two calls have the same id";
}

TEST_P(InferenceConformance, ObservationsAreTakenOrRefusedByName) {
  const Query of = query();
  EXPECT_EQ(inference_.observe({"nothing", "", of.inputs, {}}).code(), StatusCode::kNotFound);
  EXPECT_EQ(inference_.observe({"loading", "", of.inputs, {}}).code(), StatusCode::kUnavailable);
  const Status status = inference_.observe({"doubling", "1", of.inputs, {}});
  if (status.ok()) return;
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), testing::HasSubstr("'doubling'"));
}

}  // namespace foliot

#endif  // FOLIOT_ANSWER_INFERENCE_CONFORMANCE_INFERENCE_CONFORMANCE_H_
