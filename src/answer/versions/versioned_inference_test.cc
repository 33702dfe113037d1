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
  VersionedInference versioned_{fake_, names_};
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

TEST_F(VersionedInferenceTest, AVersionThatIsNotServedIsAnError) {
  const CallError error = client_.error_of(query("4"));
  EXPECT_EQ(error.http_status, 404);
  EXPECT_THAT(error.message, testing::HasSubstr("served are 1 and 3"));
}

}  // namespace
}  // namespace foliot
