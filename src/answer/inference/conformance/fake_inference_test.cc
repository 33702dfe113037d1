#include "answer/inference/conformance/fake_inference.h"

#include "answer/inference/conformance/inference_conformance.h"

namespace foliot {
namespace {

class FakeHarness final : public InferenceHarness {
 public:
  FakeHarness() { put_conformance_models(catalog_); }
  FakeInference& inference() override { return fake_; }
  TimePoint now() override { return now_; }
  void advance(Duration duration) override { now_ += duration; }
  void hold() override { fake_.hold(); }
  void release() override { fake_.release(); }
  void refuse(Refusal refusal, const std::string& detail) override { fake_.refuse(refusal, detail); }

 private:
  TimePoint now_ = TimePoint() + Duration::seconds(1);
  Catalog catalog_;
  ServedNames names_{catalog_};
  FakeInference fake_{names_, double_inputs, [this] { return now_; }};
};

std::unique_ptr<InferenceHarness> make_fake() { return std::make_unique<FakeHarness>(); }

INSTANTIATE_TEST_SUITE_P(Fake, InferenceConformance, testing::Values(InferenceCase{"Fake", &make_fake}));

TEST(FakeInferenceTest, AnswersHaveTheQualityThatItWasSet) {
  FakeHarness harness;
  ConformanceClient client(harness.inference());
  harness.inference().set_quality(Quality::kDefault);
  const CallId call = client.started(client.doubling_query(harness.now()));
  client.await(1);
  EXPECT_EQ(client.answer(call).quality(), Quality::kDefault);
}

TEST(FakeInferenceTest, CountsObservations) {
  FakeHarness harness;
  ASSERT_TRUE(harness.inference().observe({"doubling", "", {}, {}}).ok());
  EXPECT_EQ(harness.inference().observations("doubling"), 1u);
}

}  // namespace
}  // namespace foliot
