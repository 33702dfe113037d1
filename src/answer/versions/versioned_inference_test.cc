#include "answer/versions/versioned_inference.h"

#include <memory>
#include <string>

#include "answer/inference/conformance/fake_inference.h"
#include "answer/inference/conformance/inference_conformance.h"
#include "answer/versions/served_versions.h"

namespace foliot {
namespace {

class VersionedHarness final : public InferenceHarness {
 public:
  VersionedHarness() { put_conformance_models(catalog_); }
  FakeInference& fake() { return fake_; }
  VersionedInference& inference() override { return versioned_; }
  Catalog& catalog() { return catalog_; }
  ServedVersions& versions() { return versions_; }
  TimePoint now() override { return now_; }
  void advance(Duration duration) override { now_ += duration; }
  void hold() override { fake_.hold(); }
  void release() override { fake_.release(); }
  void refuse(Refusal refusal, const std::string& detail) override { fake_.refuse(refusal, detail); }

 private:
  TimePoint now_ = TimePoint() + Duration::seconds(1);
  Catalog catalog_;
  ServedVersions versions_{catalog_};
  ServedNames names_{catalog_};
  FakeInference fake_{names_, double_inputs, [this] { return now_; }};
  const std::function<TimePoint()> clock_ = [this] { return now_; };
  VersionedInference versioned_{fake_, names_, clock_};
};

INSTANTIATE_TEST_SUITE_P(Versioned, InferenceConformance,
                         testing::Values(InferenceCase{"Versioned", [] {
                                                         return std::unique_ptr<InferenceHarness>(
                                                             std::make_unique<VersionedHarness>());
                                                       }}));

class VersionedInferenceTest : public testing::Test {
 protected:
  VersionedInferenceTest() {
    for (const char* version : {"1", "3"}) {
      ModelInfo model = doubling_model(ModelId(1));
      model.name = versioned_name("m", version);
      model.version = version;
      harness_.catalog().put({.name = model.name,
                              .version = model.version,
                              .state = ModelState::kReady,
                              .reason = "",
                              .info = std::make_shared<const ModelInfo>(model)});
    }
    harness_.versions().set_rules("m", {.labels = {{"stable", 1}}, .split = {{1, 95}, {3, 5}}});
  }
  Query query(std::string_view version, std::string_view key = {}) {
    Query query = client_.doubling_query(harness_.now());
    query.name = "m";
    query.version = version;
    query.split_key = key;
    return query;
  }
  std::string version_of(const Query& query) {
    const CallId call = client_.started(query);
    client_.await(++calls_);
    return std::string(client_.answer(call).version());
  }

  VersionedHarness harness_;
  ConformanceClient client_{harness_.inference()};
  size_t calls_ = 0;
};

TEST_F(VersionedInferenceTest, ACallGetsTheVersionThatItNames) {
  EXPECT_EQ(version_of(query("3")), "3");
  EXPECT_EQ(version_of(query("stable")), "1");
}

TEST_F(VersionedInferenceTest, CallsThatNameNoneAreSplit) {
  int canaries = 0;
  for (int i = 0; i < 100; ++i) canaries += version_of(query("")) == "3" ? 1 : 0;
  EXPECT_EQ(canaries, 5);
  const std::string first = version_of(query("", "a user"));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(version_of(query("", "a user")), first);
}

TEST_F(VersionedInferenceTest, ACanaryThatFailsIsFoundAndAnEqualOneIsNot) {
  std::vector<std::string> worse;
  harness_.inference().watch().set_on_worse([&](const std::string& name, uint64_t version, const std::string& why) {
    worse.push_back(name + " " + std::to_string(version) + " " + why);
    harness_.versions().take_out(name, version, why);
  });
  harness_.versions().set_rules("m", {.split = {{1, 95}, {3, 5}}, .rollback = true});
  for (int i = 0; i < 400; ++i) version_of(query(""));
  EXPECT_THAT(worse, testing::IsEmpty());
  harness_.fake().refuse_model("m/3", Refusal::kModelError);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const CallId call = client_.started(query(""));
    client_.await(++calls_);
    refused += client_.answer(call).served() ? 0 : 1;
  }
  EXPECT_THAT(worse, testing::ElementsAre(testing::StartsWith("m 3 errors: ")));
  EXPECT_LT(refused, 10);
  const std::map<std::pair<std::string, uint64_t>, uint64_t> once{{{"m", 3}, 1}};
  EXPECT_EQ(harness_.inference().watch().rollbacks(), once);
}

TEST_F(VersionedInferenceTest, ALossIsOfAVersion) {
  harness_.versions().set_rules("m", {.labels = {{"canary", 3}}, .split = {{1, 50}, {3, 50}}, .rollback = true});
  Observation observation{.name = "m", .version = {}, .inputs = {}, .outputs = {}, .losses = {{"canary", 1}}};
  for (int i = 0; i < 40; ++i) {
    observation.losses[0] = {i % 2 == 0 ? "canary" : "1", i % 2 == 0 ? 1.0 : 0.0};
    EXPECT_TRUE(harness_.inference().observe(observation).ok());
  }
  EXPECT_EQ(harness_.inference().watch().rollbacks().size(), 1u);
  observation.losses[0] = {"1", 1.5};
  EXPECT_EQ(harness_.inference().observe(observation).code(), StatusCode::kInvalidArgument);
  observation.losses[0] = {"7", 1};
  EXPECT_EQ(harness_.inference().observe(observation).code(), StatusCode::kNotFound);
}

TEST_F(VersionedInferenceTest, AShadowGetsACopyAndAnswersNobody) {
  harness_.versions().set_rules("m", {.split = {{1, 100}}, .shadow = 3});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(version_of(query("")), "1");
  client_.deliver();
  const auto shadows = harness_.inference().watch().shadows();
  EXPECT_EQ(shadows.at({"m", 3}).agree, 10u);
  EXPECT_EQ(client_.count(), 10u);
}

TEST_F(VersionedInferenceTest, CopiesAreBounded) {
  harness_.versions().set_rules("m", {.split = {{1, 100}}, .shadow = 3});
  harness_.fake().hold_running("m/3");
  for (size_t i = 0; i < SplitWatch::kCopiesMax + 5; ++i) version_of(query(""));
  EXPECT_EQ(harness_.inference().watch().shadows().at({"m", 3}).skipped, 5u);
  harness_.fake().release();
  client_.deliver();
  EXPECT_EQ(harness_.inference().watch().shadows().at({"m", 3}).agree, SplitWatch::kCopiesMax);
}

TEST_F(VersionedInferenceTest, AVersionThatIsNotServedIsAnError) {
  const CallError error = client_.error_of(query("4"));
  EXPECT_EQ(error.http_status, 404);
  EXPECT_THAT(error.message, testing::HasSubstr("served are 1 and 3"));
}

}  // namespace
}  // namespace foliot
