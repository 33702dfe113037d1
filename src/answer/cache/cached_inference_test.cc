#include "answer/cache/cached_inference.h"

#include <memory>
#include <string>

#include "answer/cache/cache_metrics.h"
#include "answer/inference/conformance/fake_inference.h"
#include "answer/inference/conformance/inference_conformance.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

class CacheHarness final : public InferenceHarness {
 public:
  explicit CacheHarness(uint64_t bytes_max = 1 << 20) : cached_(bytes_max, fake_, names_, statistics_, clock()) {
    put_conformance_models(catalog_);
    serve([](ModelInfo&) {});
  }
  // `doubling` with its predictions kept, and changed so.
  void serve(const std::function<void(ModelInfo&)>& change) {
    ModelInfo model = doubling_model(ModelId(1));
    model.content = "abc";
    model.cache = true;
    change(model);
    catalog_.put({.name = model.name,
                  .version = model.version,
                  .state = ModelState::kReady,
                  .reason = "",
                  .info = std::make_shared<const ModelInfo>(model)});
  }
  CachedInference& inference() override { return cached_; }
  TimePoint now() override { return now_; }
  void advance(Duration duration) override { now_ += duration; }
  void hold() override { fake_.hold(); }
  void release() override { fake_.release(); }
  void refuse(Refusal refusal, const std::string& detail) override { fake_.refuse(refusal, detail); }
  size_t computed() const { return computed_; }
  ModelStatistics statistics() const { return statistics_.snapshot().front(); }
  void drain() { names_.drain(); }

 private:
  std::function<TimePoint()> clock() {
    return [this] { return now_; };
  }

  TimePoint now_ = TimePoint() + Duration::seconds(1);
  Catalog catalog_;
  ServedNames names_{catalog_};
  CallStatistics statistics_;
  std::atomic<size_t> computed_{0};
  FakeInference fake_{names_,
                      [this](const ModelInfo& model, const Query& query) {
                        ++computed_;
                        return double_inputs(model, query);
                      },
                      clock()};
  CachedInference cached_;
};

INSTANTIATE_TEST_SUITE_P(Cached, InferenceConformance,
                         testing::Values(InferenceCase{"Cached", [] {
                                                         return std::unique_ptr<InferenceHarness>(
                                                             std::make_unique<CacheHarness>());
                                                       }}));

class CachedInferenceTest : public testing::Test {
 protected:
  CallId start(float first = 1) { return client_.started(client_.doubling_query(harness_.now(), first)); }
  CallId start_until(Duration deadline) {
    Query query = client_.doubling_query(harness_.now());
    query.deadline = harness_.now() + deadline;
    return client_.started(query);
  }
  bool is_cached(CallId call) { return !client_.answer(call).parameters().empty(); }
  // The first output's first number.
  float answer_of(CallId call) {
    Answer& answer = client_.answer(call);
    answer.settle();
    EXPECT_TRUE(answer.served());
    const std::string bytes = answer.take_output(0);
    float value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  CacheHarness harness_;
  ConformanceClient client_{harness_.inference()};
};

TEST_F(CachedInferenceTest, EqualInputsAreComputedOnce) {
  const CallId first = start(1);
  client_.await(1);
  const CallId again = start(1);
  const CallId other = start(5);
  client_.await(3);
  EXPECT_EQ(harness_.computed(), 2u);
  EXPECT_FALSE(is_cached(first));
  EXPECT_TRUE(is_cached(again));
  EXPECT_FALSE(is_cached(other));
  EXPECT_EQ(client_.answer(again).number(), RequestId());
  EXPECT_EQ(answer_of(first), 2);
  EXPECT_EQ(answer_of(again), 2);
  EXPECT_EQ(answer_of(other), 10);
}

TEST_F(CachedInferenceTest, CountsHitsAndMisses) {
  start(1);
  client_.await(1);
  const CallId hit = start(1);
  client_.await(2);
  harness_.advance(Duration::milliseconds(3));
  client_.answer(hit).settle();
  const ModelStatistics statistics = harness_.statistics();
  EXPECT_EQ(statistics.cache_hit.count, 1u);
  EXPECT_EQ(statistics.cache_hit.nanoseconds, 3'000'000u);
  EXPECT_EQ(statistics.success.count, 1u) << "the layer below counts its own";
  EXPECT_EQ(statistics.cache_miss.count, 1u);
  EXPECT_THAT(CacheMetrics(harness_.inference()).text(), HasSubstr("foliot_prediction_cache_predictions 1"));
}

TEST_F(CachedInferenceTest, OnlyModelsThatAskForItAreKept) {
  harness_.serve([](ModelInfo& model) { model.cache = false; });
  start();
  client_.await(1);
  start();
  client_.await(2);
  EXPECT_EQ(harness_.computed(), 2u);
  harness_.serve([](ModelInfo& model) { model.content.clear(); });
  start();
  start();
  client_.await(4);
  EXPECT_EQ(harness_.computed(), 4u) << "what it would be a prediction of is not known";
}

TEST_F(CachedInferenceTest, AnotherContentIsAnotherModel) {
  start();
  client_.await(1);
  harness_.serve([](ModelInfo& model) { model.content = "abd"; });
  start();
  client_.await(2);
  EXPECT_EQ(harness_.computed(), 2u);
}

TEST_F(CachedInferenceTest, CallsUnderWayAreFollowed) {
  harness_.hold();
  const CallId leader = start();
  const CallId follower = start();
  harness_.release();
  client_.await(2);
  EXPECT_EQ(harness_.computed(), 1u);
  EXPECT_EQ(answer_of(leader), 2);
  EXPECT_EQ(answer_of(follower), 2);
  EXPECT_TRUE(is_cached(follower));
}

TEST_F(CachedInferenceTest, NoCallFollowsOneThatMayEndLater) {
  harness_.hold();
  start_until(Duration::milliseconds(50));
  start_until(Duration::milliseconds(40));
  start_until(Duration::milliseconds(60));
  Query offline = client_.doubling_query(harness_.now());
  offline.request_class = RequestClass::kOffline;
  client_.started(offline);
  harness_.release();
  client_.await(4);
  EXPECT_EQ(harness_.computed(), 2u) << "the first two";
}

TEST_F(CachedInferenceTest, AFollowerLeadsWhenItsLeaderIsRefused) {
  harness_.hold();
  const CallId leader = start_until(Duration::milliseconds(50));
  const CallId last = start_until(Duration::milliseconds(70));
  const CallId next = start_until(Duration::milliseconds(60));
  harness_.inference().cancel(leader);
  client_.await(1);
  harness_.release();
  client_.await(3);
  EXPECT_FALSE(client_.answer(leader).served());
  EXPECT_EQ(answer_of(next), 2);
  EXPECT_FALSE(is_cached(next)) << "it is the most urgent";
  EXPECT_EQ(answer_of(last), 2);
  EXPECT_TRUE(is_cached(last));
  EXPECT_EQ(harness_.computed(), 2u) << "the leader and the next";
}

TEST_F(CachedInferenceTest, AFollowerThatCannotLeadIsRefused) {
  harness_.hold();
  const CallId leader = start();
  const CallId follower = start();
  harness_.serve([](ModelInfo& model) { model.inputs[0].name = "z"; });
  harness_.inference().cancel(leader);
  client_.await(2);
  Answer& refused = client_.answer(follower);
  refused.settle();
  ASSERT_FALSE(refused.served());
  EXPECT_EQ(refused.error().http_status, 400u);
}

TEST_F(CachedInferenceTest, CancellingAFollowerLeavesItsLeader) {
  harness_.hold();
  const CallId leader = start();
  const CallId follower = start();
  harness_.inference().cancel(follower);
  client_.await(1);
  EXPECT_EQ(client_.answer(follower).error().reason, "cancelled");
  harness_.release();
  client_.await(2);
  EXPECT_EQ(answer_of(leader), 2);
}

TEST_F(CachedInferenceTest, ALeaderThatIsCancelledBeforeItGoesOnLeavesToTheNext) {
  harness_.hold();
  const CallId leader = start();
  const CallId second = start();
  const CallId third = start();
  harness_.inference().cancel(leader);
  client_.deliver();  // the leader's answer; the second now leads, and is not yet under way
  harness_.inference().cancel(second);
  harness_.release();
  client_.await(3);
  EXPECT_FALSE(client_.answer(second).served());
  EXPECT_EQ(answer_of(third), 2);
}

TEST_F(CachedInferenceTest, RefusalsAreNotKept) {
  harness_.refuse(Refusal::kOverload, "");
  start();
  client_.await(1);
  harness_.refuse(Refusal::kNone, "");
  const CallId call = start();
  client_.await(2);
  EXPECT_EQ(answer_of(call), 2);
}

TEST_F(CachedInferenceTest, AServerThatDrainsAnswersNothingFromHere) {
  start();
  client_.await(1);
  harness_.drain();
  const Query query = client_.doubling_query(harness_.now());
  const Inference::Started started = client_.start(query);
  if (const CallId* call = std::get_if<CallId>(&started)) {
    client_.await(2);
    EXPECT_FALSE(is_cached(*call)) << "the layer below decides";
  } else {
    EXPECT_EQ(std::get<CallError>(started).reason, to_string(Refusal::kDraining));
  }
}

TEST(CachedInferenceWithoutBytesTest, StillComputesOnceWhatIsAskedAtOnce) {
  CacheHarness harness(0);
  ConformanceClient client(harness.inference());
  harness.hold();
  client.started(client.doubling_query(harness.now()));
  client.started(client.doubling_query(harness.now()));
  harness.release();
  client.await(2);
  EXPECT_EQ(harness.computed(), 1u);
  client.started(client.doubling_query(harness.now()));
  client.await(3);
  EXPECT_EQ(harness.computed(), 2u);
}

}  // namespace
}  // namespace foliot
