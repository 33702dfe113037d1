#include "answer/selection/selected_inference.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "answer/inference/conformance/fake_inference.h"
#include "answer/inference/conformance/inference_conformance.h"
#include "answer/selection/policies.h"
#include "answer/selection/selection_metrics.h"
#include "foundation/base/test_seed.h"
#include "foundation/core/pipeline_info.h"

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Processes of tests run at the same time.
std::filesystem::path own_folder(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / fmt::format("foliot_{}_{}", name, ::getpid());
  std::filesystem::create_directories(folder);
  return folder;
}

// An application of these settings, as its file has them.
Application application_of(const std::string& name, std::string_view text) {
  const auto folder = own_folder(name);
  std::ofstream(folder / "application.toml") << text;
  Application application = read_application(name, folder / "application.toml");
  std::filesystem::remove_all(folder);
  return application;
}

// `doubling` is an application of models that double, or add what their names say.
class SelectionHarness final : public InferenceHarness {
 public:
  explicit SelectionHarness(std::string_view settings = "models = ['double']\npolicy = 'static'",
                            uint64_t inputs_bytes_max = 1 << 20)
      : selected_({.seed = 7, .inputs_bytes_max = inputs_bytes_max}, fake_, names_, statistics_,
                  [this] { return now_; }) {
    for (const char* name : {"double", "plus10", "plus20"}) serve(name);
    catalog_.put({.name = "loading", .version = "1", .state = ModelState::kLoading, .reason = "", .info = nullptr});
    catalog_.set_ready();
    std::vector<Application> applications;
    applications.push_back(application_of("doubling", settings));
    selected_.serve(std::move(applications), catalog_);
  }
  void serve(
      const std::string& name, const std::function<void(ModelInfo&)>& change = [](ModelInfo&) {}) {
    ModelInfo model = doubling_model(ModelId(1));
    model.name = name;
    change(model);
    catalog_.put({.name = name,
                  .version = "1",
                  .state = ModelState::kReady,
                  .reason = "",
                  .info = std::make_shared<const ModelInfo>(model)});
  }
  // The same as a pipeline.
  void serve_pipeline(const std::string& name) {
    ModelInfo pipeline = doubling_model(ModelId(0));
    pipeline.name = name;
    pipeline.pipeline = std::make_shared<const PipelineInfo>();
    catalog_.put({.name = name,
                  .version = "1",
                  .state = ModelState::kReady,
                  .reason = "",
                  .info = std::make_shared<const ModelInfo>(pipeline),
                  .role = EntryRole::kPipeline});
  }
  void withdraw(const std::string& name, ModelState state = ModelState::kUnavailable) {
    catalog_.put({.name = name, .version = "1", .state = state, .reason = "withdrawn", .info = nullptr});
  }
  SelectedInference& inference() override { return selected_; }
  TimePoint now() override { return now_; }
  void advance(Duration duration) override { now_ += duration; }
  void hold() override { fake_.hold(); }
  void hold_running(const std::string& model) { fake_.hold_running(model); }
  void release() override { fake_.release(); }
  void refuse(Refusal refusal, const std::string& detail) override { fake_.refuse(refusal, detail); }
  void refuse_model(const std::string& name, Refusal refusal) { fake_.refuse_model(name, refusal); }
  Catalog& catalog() { return catalog_; }
  SelectedInference& selected() { return selected_; }
  // What is said of applications that the repository has from now on.
  std::vector<std::string> replace(const std::vector<std::string>& settings) {
    std::vector<Application> applications;
    for (const std::string& one : settings) {
      applications.push_back(application_of(applications.empty() ? "doubling" : "other", one));
    }
    return selected_.replace(std::move(applications));
  }
  CallStatistics& statistics() { return statistics_; }
  std::function<void(const Query&)> on_compute;
  ApplicationStatistics application_statistics() const { return selected_.application_statistics().front().second; }

 private:
  std::vector<std::string> compute(const ModelInfo& model, const Query& query) const {
    if (on_compute) on_compute(query);
    std::vector<std::string> outputs = double_inputs(model, query);
    const float more = model.name == "plus10" ? 10 : model.name == "plus20" ? 20 : 0;
    for (size_t at = 0; at < outputs[0].size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, outputs[0].data() + at, sizeof value);
      value += more;
      std::memcpy(outputs[0].data() + at, &value, sizeof value);
    }
    return outputs;
  }

  TimePoint now_ = TimePoint() + Duration::seconds(1);
  Catalog catalog_;
  ServedNames names_{catalog_};
  CallStatistics statistics_;
  FakeInference fake_{names_, [this](const ModelInfo& model, const Query& query) { return compute(model, query); },
                      [this] { return now_; }};
  SelectedInference selected_;
};

INSTANTIATE_TEST_SUITE_P(Selected, InferenceConformance,
                         testing::Values(InferenceCase{"Selected", [] {
                                                         return std::unique_ptr<InferenceHarness>(
                                                             std::make_unique<SelectionHarness>());
                                                       }}));

constexpr std::string_view kThree = "models = ['double', 'plus10', 'plus20']\n";

class SelectedInferenceTest : public testing::Test {
 protected:
  void use(const std::string& settings, uint64_t inputs_bytes_max = 1 << 20) {
    client_.reset();
    harness_ = std::make_unique<SelectionHarness>(std::string(kThree) + settings, inputs_bytes_max);
    client_ = std::make_unique<ConformanceClient>(harness_->inference());
  }
  Query query() { return client_->doubling_query(harness_->now()); }
  // The answer of one call.
  Answer& ask(const Query& query) {
    client_->forget();
    const CallId call = client_->started(query);
    client_->await(1);
    Answer& answer = client_->answer(call);
    return answer;
  }
  Answer& ask() { return ask(query()); }
  static AnswerParameter parameter(const Answer& answer, std::string_view name) {
    for (const AnswerParameter& found : answer.parameters()) {
      if (found.name == name) return found;
    }
    return {"", false};
  }
  static std::string text(const Answer& answer, std::string_view name) {
    const AnswerParameter found = parameter(answer, name);
    const auto* value = std::get_if<std::string>(&found.value);
    return value == nullptr ? "none" : *value;
  }
  static double confidence(const Answer& answer) { return std::get<double>(parameter(answer, "confidence").value); }
  static std::vector<float> values(Answer& answer) {
    const std::string bytes = answer.take_output(0);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  Status feed(const std::string& id, std::vector<Observation::Loss> losses, std::shared_ptr<Tenant> tenant = nullptr) {
    return harness_->inference().observe({.name = "doubling",
                                          .version = "",
                                          .inputs = {},
                                          .outputs = {},
                                          .feedback_id = id,
                                          .losses = std::move(losses),
                                          .tenant = std::move(tenant)});
  }
  Status feed_label(const std::string& id, const std::vector<double>& label) {
    return harness_->inference().observe({.name = "doubling",
                                          .version = "",
                                          .inputs = {},
                                          .outputs = {{"", "FP64", {}, std::as_bytes(std::span(label))}},
                                          .feedback_id = id});
  }

  std::unique_ptr<SelectionHarness> harness_;
  std::unique_ptr<ConformanceClient> client_;
};

TEST_F(SelectedInferenceTest, OneModelAnswersForTheApplication) {
  use("policy = { name = 'static', model = 'plus10' }");
  Answer& answer = ask();
  ASSERT_TRUE(answer.served());
  EXPECT_EQ(answer.name(), "doubling");
  EXPECT_EQ(values(answer), (std::vector<float>{12, 14, 16, 18}));
  EXPECT_EQ(text(answer, "models"), "plus10");
  EXPECT_EQ(confidence(answer), 1);
  EXPECT_EQ(text(answer, "feedback_id").size(), 32u);
}

TEST_F(SelectedInferenceTest, SeveralAnswersAreCombined) {
  use("policy = 'majority'\ntolerance = 1");
  Answer& answer = ask();
  EXPECT_EQ(answer.quality(), Quality::kComplete);
  EXPECT_EQ(values(answer), (std::vector<float>{12, 14, 16, 18}));
  EXPECT_EQ(text(answer, "models"), "double,plus10,plus20");
  EXPECT_EQ(text(answer, "missing"), "none");
  EXPECT_NEAR(confidence(answer), 1.0 / 3, 1e-9);
  answer.settle();
  EXPECT_TRUE(answer.served());
  const auto counted = harness_->statistics().snapshot();
  EXPECT_EQ(counted.front().name, "doubling");
  EXPECT_EQ(counted.front().success.count, 1u);
  EXPECT_EQ(counted.front().inference_count, 2u);
}

TEST_F(SelectedInferenceTest, OnlyTheOutputsThatAreAskedForAreAnswered) {
  use("policy = 'majority'");
  Query asked = query();
  asked.outputs = {"y", "y"};
  EXPECT_EQ(ask(asked).output_count(), 2u);
}

TEST_F(SelectedInferenceTest, ModelsThatAreNotReadyAreNotAsked) {
  use("policy = 'majority'");
  harness_->withdraw("plus20");
  EXPECT_EQ(text(ask(), "models"), "double,plus10");
  EXPECT_THAT(harness_->catalog().find("doubling")->reason, HasSubstr("'plus20' is UNAVAILABLE: withdrawn"));
  harness_->serve("plus20");
  EXPECT_EQ(harness_->catalog().find("doubling")->reason, "");
  EXPECT_EQ(text(ask(), "models"), "double,plus10,plus20");
}

TEST_F(SelectedInferenceTest, WithoutAnyModelItIsNotReady) {
  use("policy = 'majority'");
  for (const char* name : {"double", "plus10", "plus20"}) harness_->withdraw(name);
  EXPECT_EQ(harness_->catalog().find("doubling")->state, ModelState::kUnavailable);
  EXPECT_EQ(client_->error_of(query()).http_status, 503u);
  harness_->withdraw("plus10", ModelState::kLoading);
  EXPECT_EQ(harness_->catalog().find("doubling")->state, ModelState::kLoading);
}

TEST_F(SelectedInferenceTest, ModelsWithOtherOutputsAreNamed) {
  use("policy = 'majority'");
  harness_->serve("plus10", [](ModelInfo& model) { model.outputs[0].type = DataType::kInt64; });
  const Catalog::EntryPtr entry = harness_->catalog().find("doubling");
  EXPECT_EQ(entry->state, ModelState::kUnavailable);
  EXPECT_THAT(entry->reason,
              AllOf(HasSubstr("model 'plus10' has output 'y' of INT64, not FP32"), HasSubstr("'double'")));
  harness_->serve("plus10", [](ModelInfo& model) { model.inputs[0].shape = {3}; });
  EXPECT_THAT(harness_->catalog().find("doubling")->reason, HasSubstr("input 'x' of shape [3], not [2]"));
}

TEST_F(SelectedInferenceTest, AModelTakesTheNameOfAnApplication) {
  use("policy = 'majority'");
  harness_->serve("doubling");
  Answer& answer = ask();
  EXPECT_TRUE(answer.parameters().empty());
  EXPECT_EQ(harness_->catalog().find("doubling")->role, EntryRole::kModel);
  harness_->catalog().remove("doubling");
  EXPECT_EQ(harness_->catalog().find("doubling")->role, EntryRole::kApplication) << "it is back";
}

TEST_F(SelectedInferenceTest, MissingAnswersAreNamedAndLowerTheConfidence) {
  use("policy = 'majority'\ntolerance = 100");
  ask();
  // It is refused by its own limit of rows.
  harness_->serve("plus20", [](ModelInfo& model) { model.only().batch_sizes = {1}; });
  Answer& answer = ask();
  EXPECT_EQ(answer.quality(), Quality::kPartial);
  EXPECT_EQ(text(answer, "models"), "double,plus10");
  EXPECT_EQ(text(answer, "missing"), "plus20");
  EXPECT_NEAR(confidence(answer), 2.0 / 3, 1e-9);
  // plus20 answered 22, 24, then 26, 28 before: its mean is 24, 26.
  EXPECT_EQ(values(answer), (std::vector<float>{(2 + 12 + 24) / 3.0F, (4 + 14 + 26) / 3.0F, (6 + 16 + 24) / 3.0F,
                                                (8 + 18 + 26) / 3.0F}));
}

TEST_F(SelectedInferenceTest, PipelinesAreAskedAsModelsAre) {
  use("policy = 'majority'");
  harness_->serve_pipeline("plus10");
  EXPECT_EQ(text(ask(), "models"), "double,plus10,plus20");
  const auto shown = harness_->catalog().find("doubling");
  EXPECT_THAT(shown->models, testing::ElementsAre("double", "plus10", "plus20"));
  harness_->withdraw("double");
  ASSERT_EQ(harness_->catalog().find("doubling")->state, ModelState::kReady);
  EXPECT_EQ(harness_->catalog().find("doubling")->info->pipeline, nullptr) << "the application is none itself";
  EXPECT_EQ(text(ask(), "models"), "plus10,plus20");
}

TEST_F(SelectedInferenceTest, LittleConfidenceIsTheDefault) {
  use("policy = 'majority'\ntolerance = 1\nconfidence_min = 0.5\n[default]\ny = [-1, -2]");
  Answer& answer = ask();
  EXPECT_EQ(answer.quality(), Quality::kDefault);
  EXPECT_EQ(values(answer), (std::vector<float>{-1, -2, -1, -2}));
  EXPECT_EQ(std::get<int64_t>(parameter(answer, "default").value), 2);
  EXPECT_EQ(text(answer, "models"), "double,plus10,plus20");
}

TEST_F(SelectedInferenceTest, WithoutAnyAnswerTheDefaultIsGiven) {
  use("policy = 'majority'\n[default]\ny = 5");
  harness_->refuse(Refusal::kOverload, "");
  Answer& answer = ask();
  answer.settle();
  ASSERT_TRUE(answer.served());
  EXPECT_EQ(answer.quality(), Quality::kDefault);
  EXPECT_EQ(values(answer), (std::vector<float>{5, 5, 5, 5}));
  EXPECT_EQ(confidence(answer), 0);
  EXPECT_EQ(text(answer, "feedback_id"), "none");
  harness_->refuse(Refusal::kDraining, "");
  EXPECT_FALSE(ask().served()) << "another server should answer";
  harness_->refuse(Refusal::kNone, "");
  Query wrong = query();
  wrong.inputs[0].name = "z";
  EXPECT_THAT(client_->error_of(wrong).message, HasSubstr("model 'doubling'"));
}

TEST_F(SelectedInferenceTest, ModelsGetLessTimeThanTheApplication) {
  use("policy = 'majority'");
  Query query = this->query();
  query.deadline = query.arrival + Duration::milliseconds(10);
  harness_->hold();
  const CallId call = client_->started(query);
  harness_->advance(Duration::microseconds(9600));
  harness_->release();
  client_->await(1);
  Answer& answer = client_->answer(call);
  ASSERT_FALSE(answer.served()) << "9.5 ms were the model's";
  EXPECT_EQ(answer.error().reason, "late");
}

// Calls that must not wait for a model that runs late.
class StragglerTest : public SelectedInferenceTest {
 protected:
  // Begun with 10 ms, of which the models have 9.5.
  CallId start() {
    Query query = this->query();
    query.deadline = query.arrival + Duration::milliseconds(10);
    return client_->started(query);
  }
  // So long after it has begun.
  void expire_after(Duration since) {
    harness_->advance(since);
    harness_->inference().expire(harness_->now());
    client_->deliver();
  }
  static constexpr Duration kBeforeDue = Duration::microseconds(9499);
  static constexpr Duration kDue = Duration::microseconds(9500);
};

TEST_F(StragglerTest, WhatHasComeIsCombinedWhenTheTimeIsUp) {
  use("policy = 'majority'\ntolerance = 100");
  ask();
  client_->forget();
  harness_->hold_running("plus20");
  const CallId call = start();
  expire_after(kBeforeDue);
  EXPECT_EQ(client_->count(), 0u) << "there is time";
  expire_after(kDue - kBeforeDue);
  ASSERT_EQ(client_->count(), 1u);
  Answer& answer = client_->answer(call);
  answer.settle();
  ASSERT_TRUE(answer.served());
  EXPECT_EQ(answer.quality(), Quality::kPartial);
  EXPECT_EQ(text(answer, "models"), "double,plus10");
  EXPECT_EQ(text(answer, "missing"), "plus20");
  EXPECT_NEAR(confidence(answer), 2.0 / 3, 1e-9);
  EXPECT_TRUE(feed_label(text(answer, "feedback_id"), {2, 4, 6, 8}).ok());
  harness_->release();
  client_->deliver();
  EXPECT_EQ(client_->count(), 1u) << "what comes later is discarded";
  const ApplicationStatistics statistics = harness_->application_statistics();
  EXPECT_EQ(statistics.expired, 1u);
  EXPECT_EQ(statistics.partial, 1u);
  EXPECT_EQ(statistics.models[2].missing, 1u);
  EXPECT_EQ(statistics.models[0].feedbacks, 1u);
  EXPECT_EQ(statistics.models[2].losses, 1) << "an answer that does not come is as wrong as can be";
}

TEST_F(StragglerTest, AModelThatIsLateReadsTheInputsOfItsCall) {
  std::vector<float> read;
  use("policy = 'majority'");
  harness_->on_compute = [&](const Query& query) {
    const std::span<const std::byte> bytes = query.inputs.front().bytes;
    read.resize(bytes.size() / sizeof(float));
    std::memcpy(read.data(), bytes.data(), bytes.size());
  };
  harness_->hold_running("plus20");
  start();
  EXPECT_EQ(harness_->selected().inputs_bytes(), 16u);
  expire_after(kDue);
  ASSERT_EQ(client_->count(), 1u);
  client_->forget();
  client_->doubling_query(harness_->now(), 100);  // what the client sent is no longer there
  EXPECT_EQ(harness_->selected().inputs_bytes(), 16u);
  harness_->release();
  EXPECT_EQ(read, (std::vector<float>{1, 2, 3, 4}));
  client_->deliver();
  EXPECT_EQ(harness_->selected().inputs_bytes(), 0u);
}

TEST_F(StragglerTest, CopiesOfInputsAreLimited) {
  use("policy = 'majority'", 40);
  harness_->hold_running("plus20");
  start();
  start();
  expire_after(kDue);
  EXPECT_EQ(client_->count(), 2u);
  Query third = query();
  third.deadline = third.arrival + Duration::milliseconds(10);
  const CallError error = client_->error_of(third);
  EXPECT_EQ(error.reason, "overload");
  EXPECT_THAT(error.message,
              AllOf(testing::StartsWith("model 'doubling' refused the request: overload: "),
                    HasSubstr("hold 32 B of inputs"), HasSubstr("the 40 B that are allowed (--bodies-max)")));
  Query best_effort = query();
  client_->forget();
  client_->started(best_effort);
  harness_->release();
  client_->await(1);
  EXPECT_EQ(harness_->selected().inputs_bytes(), 0u) << "a call without a deadline waits, and copies nothing";
  EXPECT_NE(start(), CallId());
}

TEST_F(StragglerTest, AnswersInTimeAreNotHeldUpByTheTimer) {
  use("policy = 'majority'");
  const CallId call = start();
  client_->await(1);
  EXPECT_EQ(text(client_->answer(call), "missing"), "none");
  EXPECT_TRUE(harness_->inference().expire(harness_->now()).is_infinite()) << "nothing is left of it";
  expire_after(kDue);
  EXPECT_EQ(client_->count(), 1u);
  EXPECT_EQ(harness_->application_statistics().expired, 0u);
}

TEST_F(StragglerTest, WithoutAnyAnswerTheCallEndsInTimeToo) {
  use("policy = 'majority'");
  harness_->hold();
  CallId call = start();
  expire_after(kDue);
  ASSERT_EQ(client_->count(), 1u);
  ASSERT_FALSE(client_->answer(call).served());
  const CallError error = client_->answer(call).error();
  EXPECT_EQ(error.reason, "late");
  EXPECT_THAT(error.message, HasSubstr("model 'doubling' refused the request: late: none of its models"));
  EXPECT_EQ(harness_->application_statistics().refusals, 1u);

  use("policy = 'static'\n[default]\ny = 5");
  harness_->hold();
  call = start();
  expire_after(kDue);
  ASSERT_EQ(client_->count(), 1u);
  EXPECT_EQ(client_->answer(call).quality(), Quality::kDefault);
  harness_->release();
  client_->deliver();
  EXPECT_EQ(client_->count(), 1u);
}

TEST_F(StragglerTest, OneModelWithoutADefaultIsWaitedFor) {
  use("policy = 'static'");
  harness_->hold();
  start();
  EXPECT_EQ(harness_->selected().inputs_bytes(), 0u);
  expire_after(kDue);
  EXPECT_EQ(client_->count(), 0u);
  harness_->release();
  client_->await(1);
}

TEST_F(StragglerTest, ACancelledCallEndsAsSuchWhenItsTimeIsUp) {
  use("policy = 'majority'\n[default]\ny = 5");
  harness_->hold_running("plus20");
  const CallId call = start();
  harness_->inference().cancel(call);
  client_->deliver();
  EXPECT_EQ(client_->count(), 0u) << "a model still runs";
  expire_after(kDue);
  ASSERT_EQ(client_->count(), 1u);
  EXPECT_EQ(client_->answer(call).error().reason, "cancelled");
  harness_->inference().cancel(call);
  harness_->release();
  client_->deliver();
  EXPECT_EQ(client_->count(), 1u);
  EXPECT_EQ(harness_->selected().inputs_bytes(), 0u);
}

TEST_F(StragglerTest, TheTimerIsSetForWhatIsDueEarlier) {
  use("policy = 'majority'");
  std::vector<TimePoint> set;
  harness_->inference().use_timer([&](TimePoint due) { set.push_back(due); });
  harness_->hold();
  start();
  const TimePoint first = harness_->now() + kDue;
  EXPECT_EQ(set, std::vector{first});
  start();
  harness_->advance(Duration::milliseconds(1));
  start();
  EXPECT_EQ(set, std::vector{first}) << "they are due later";
  Query urgent = query();
  urgent.deadline = urgent.arrival + Duration::milliseconds(6);
  client_->started(urgent);
  const TimePoint earlier = harness_->now() + Duration::microseconds(5700);
  EXPECT_EQ(set, (std::vector{first, earlier}));
  EXPECT_EQ(harness_->inference().expire(harness_->now()), earlier);
}

TEST_F(StragglerTest, WhereAnswersLeaveLateTheTimeIsUpEarlier) {
  use("policy = 'majority'");
  harness_->hold_running("plus20");
  for (int i = 0; i < 64; ++i) {
    const CallId call = start();
    expire_after(kDue);
    harness_->advance(Duration::milliseconds(2));
    client_->answer(call).settle();
    client_->forget();
  }
  const CallId call = start();
  expire_after(Duration::microseconds(7500));
  EXPECT_EQ(client_->count(), 1u) << "a quarter of the call's time at most";
  client_->answer(call).settle();
  EXPECT_TRUE(client_->answer(call).served());
}

// Models that give no answer, and policies that ask one of them.
class FailingModelTest : public StragglerTest {
 protected:
  // Two thirds of these models fail on every call, and the third errs in one of ten. Returns of the last
  // `last` of `calls` the share without an answer; with one, there is feedback.
  double unanswered_share(int calls, int last, const std::function<void()>& run_call = {}) {
    Random random(seed_);
    int unanswered = 0;
    for (int i = 0; i < calls; ++i) {
      client_->forget();
      const CallId call = start();
      if (run_call) run_call();
      client_->await(1);
      Answer& answer = client_->answer(call);
      if (answer.served()) {
        EXPECT_TRUE(feed(text(answer, "feedback_id"), {{"", random.uniform() < 0.1 ? 1.0 : 0.0}}).ok());
      } else if (i >= calls - last) {
        ++unanswered;
      }
    }
    return static_cast<double>(unanswered) / last;
  }
  uint64_t asked(size_t model) { return harness_->application_statistics().models[model].selections; }

  const uint64_t seed_ = fresh_seed();
};

constexpr const char* kLearningPolicies[] = {"epsilon_greedy", "ucb1", "thompson", "exp3"};

TEST_F(FailingModelTest, AnotherModelAnswersInPlaceOfOneThatFails) {
  for (const Refusal refusal : {Refusal::kModelError, Refusal::kUnmeetable, Refusal::kOverload, Refusal::kLate,
                                Refusal::kWorkerLost, Refusal::kUnloaded, Refusal::kExpired}) {
    use("policy = 'static'");
    harness_->refuse_model("double", refusal);
    Answer& answer = ask();
    ASSERT_TRUE(answer.served()) << to_string(refusal);
    EXPECT_EQ(text(answer, "models"), "plus10");
    EXPECT_EQ(text(answer, "missing"), "double");
    EXPECT_EQ(values(answer), (std::vector<float>{12, 14, 16, 18}));
    EXPECT_EQ(confidence(answer), 1);
    EXPECT_TRUE(feed(text(answer, "feedback_id"), {{"", 0}}).ok()) << "of the one that answered";
    EXPECT_EQ(harness_->application_statistics().models[0].missing, 1u);
    EXPECT_EQ(harness_->application_statistics().models[1].feedbacks, 1u);
  }
}

TEST_F(FailingModelTest, NoOtherModelIsAskedWhereNoneCouldAnswer) {
  for (const Refusal refusal : {Refusal::kOverShare, Refusal::kDraining, Refusal::kDisconnected, Refusal::kCancelled}) {
    use("policy = 'static'");
    harness_->refuse_model("double", refusal);
    ASSERT_FALSE(ask().served());
    EXPECT_EQ(asked(1) + asked(2), 0u) << to_string(refusal);
    EXPECT_EQ(harness_->application_statistics().models[0].missing, 0u);
  }
  Query wrong = query();
  wrong.inputs[0].name = "z";
  EXPECT_EQ(client_->error_of(wrong).http_status, 400u);
  EXPECT_EQ(asked(1) + asked(2), 0u);
}

TEST_F(FailingModelTest, NoOtherModelIsAskedOnceTheTimeIsUp) {
  use("policy = 'static'");
  harness_->hold();
  const CallId call = start();
  harness_->advance(kDue + Duration::microseconds(1));
  harness_->release();
  client_->await(1);
  EXPECT_EQ(client_->answer(call).error().reason, "late");
  EXPECT_EQ(asked(1) + asked(2), 0u);
}

TEST_F(FailingModelTest, TheFirstRefusalIsTheCallsWhereAllFail) {
  use("policy = 'static'");
  harness_->refuse_model("double", Refusal::kModelError);
  harness_->refuse_model("plus10", Refusal::kOverload);
  harness_->refuse_model("plus20", Refusal::kUnmeetable);
  const CallError error = ask().error();
  EXPECT_EQ(error.reason, "model_error");
  EXPECT_THAT(error.message, HasSubstr("model 'doubling'"));
  EXPECT_EQ(asked(0) + asked(1) + asked(2), 3u) << "each once";
}

TEST_F(FailingModelTest, PoliciesLearnFromModelsThatFailAtOnce) {
  for (const char* policy : kLearningPolicies) {
    SCOPED_TRACE(fmt::format("policy {}, seed {}", policy, seed_));
    use(fmt::format("policy = '{}'", policy));
    harness_->refuse_model("double", Refusal::kUnmeetable);
    harness_->refuse_model("plus20", Refusal::kModelError);
    EXPECT_EQ(unanswered_share(2000, 500), 0);
    const ApplicationStatistics statistics = harness_->application_statistics();
    EXPECT_GT(statistics.models[1].weight, 0.85) << "of the one that answers";
  }
}

// Each takes all the time there is, so that no other can be asked in the same call.
TEST_F(FailingModelTest, PoliciesLearnFromModelsThatAreLate) {
  for (const char* policy : kLearningPolicies) {
    SCOPED_TRACE(fmt::format("policy {}, seed {}", policy, seed_));
    use(fmt::format("policy = '{}'", policy));
    const auto run_call = [&] {
      client_->deliver();
      if (client_->count() == 1) return;
      harness_->advance(Duration::milliseconds(400));
      harness_->release();
      harness_->hold_running("double");
      harness_->hold_running("plus20");
    };
    harness_->hold_running("double");
    harness_->hold_running("plus20");
    // Its epsilon of 0.1 asks each of them in a thirtieth of the calls. Three standard deviations are noise.
    const double most = policy == std::string("epsilon_greedy") ? 0.067 : 0.02;
    EXPECT_LE(unanswered_share(4000, 1000, run_call), most + 3 * std::sqrt(most / 1000));
    EXPECT_GT(harness_->application_statistics().models[1].weight, 0.85);
  }
}

// What one model is blamed for is only what another one could do at that time.
TEST_F(FailingModelTest, AnOverloadOfAllModelsTeachesNothing) {
  for (const char* policy : kLearningPolicies) {
    SCOPED_TRACE(policy);
    use(fmt::format("policy = '{}'", policy));
    unanswered_share(1000, 1000);
    harness_->inference().restore({});
    ask();
    harness_->refuse(Refusal::kOverload, "");
    const uint64_t asked_before = asked(0) + asked(1) + asked(2);
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(ask().served());
    const uint64_t tries = asked(0) + asked(1) + asked(2) - asked_before;
    EXPECT_LE(tries, 1000u + ServedApplication::kTriesInVainMax) << "an overload is not made worse";
    EXPECT_TRUE(harness_->inference().take_changes().empty()) << "nothing was learned";
    harness_->refuse(Refusal::kNone, "");
    EXPECT_TRUE(ask().served());
  }
}

TEST_F(FailingModelTest, AProbeDecidesWhetherALateModelIsToBlame) {
  use("policy = { name = 'epsilon_greedy', epsilon = 0 }");
  harness_->inference().restore({});
  ASSERT_TRUE(feed(text(ask(), "feedback_id"), {{"", 1}}).ok()) << "double has answered; now plus10 is the best";
  EXPECT_EQ(harness_->inference().take_changes().size(), 1u);
  const auto late_call_of = [&](size_t model) {
    client_->forget();
    for (const char* one : {"double", "plus10", "plus20"}) harness_->hold_running(one);
    const uint64_t before = asked(model);
    const CallId call = start();
    EXPECT_EQ(asked(model), before + 1);
    harness_->advance(Duration::milliseconds(20));
    harness_->release();
    client_->await(1);
    EXPECT_EQ(client_->answer(call).error().reason, "late");
    EXPECT_TRUE(harness_->inference().take_changes().empty()) << "it may be the machine";
  };
  late_call_of(1);
  late_call_of(0);  // the probe asks the other model that answered last
  late_call_of(1);
  EXPECT_EQ(text(ask(), "models"), "double") << "a probe, which is answered";
  EXPECT_EQ(harness_->inference().take_changes().size(), 1u) << "it was the model";
  EXPECT_EQ(text(ask(), "models"), "plus20");
  EXPECT_EQ(harness_->application_statistics().models[1].missing, 2u);
}

TEST_F(FailingModelTest, AProbeBlamesNoModelThatHadLessTimeThanIt) {
  use("policy = { name = 'epsilon_greedy', epsilon = 0 }");
  harness_->inference().restore({});
  const auto call_of = [&](Duration given, Duration taken) {
    client_->forget();
    harness_->hold();
    Query with_deadline = query();
    with_deadline.deadline = with_deadline.arrival + given;
    const CallId call = client_->started(with_deadline);
    harness_->advance(taken);
    harness_->release();
    client_->await(1);
    return client_->answer(call).served();
  };
  EXPECT_FALSE(call_of(Duration::microseconds(1), Duration::milliseconds(1)));
  EXPECT_TRUE(call_of(Duration::milliseconds(9), Duration::milliseconds(2))) << "the probe";
  EXPECT_TRUE(harness_->inference().take_changes().empty());
  EXPECT_FALSE(call_of(Duration::milliseconds(3), Duration::milliseconds(4)));
  EXPECT_TRUE(call_of(Duration::milliseconds(9), Duration::milliseconds(2))) << "the probe";
  EXPECT_FALSE(harness_->inference().take_changes().empty());
}

TEST_F(FailingModelTest, OfSeveralModelsThoseThatFailLoseWithFeedback) {
  use("policy = { name = 'exp4', eta = 0.5 }");
  harness_->refuse_model("plus20", Refusal::kModelError);
  for (int i = 0; i < 20; ++i) {
    Answer& answer = ask();
    EXPECT_EQ(text(answer, "missing"), "plus20");
    ASSERT_TRUE(feed(text(answer, "feedback_id"), {{"double", 0.0}, {"plus10", 0.0}}).ok());
  }
  const ApplicationStatistics statistics = harness_->application_statistics();
  EXPECT_EQ(statistics.models[2].losses, 20);
  EXPECT_LT(statistics.models[2].weight, 0.01);
  harness_->refuse_model("plus20", Refusal::kOverShare);
  ASSERT_TRUE(feed(text(ask(), "feedback_id"), {{"double", 0.0}}).ok());
  EXPECT_EQ(harness_->application_statistics().models[2].losses, 20) << "its caller was to blame";
}

TEST_F(SelectedInferenceTest, FeedbackChangesTheChoice) {
  use("policy = { name = 'epsilon_greedy', epsilon = 0 }");
  for (int i = 0; i < 50; ++i) {
    Answer& answer = ask();
    const bool right = text(answer, "models") == "plus20";
    ASSERT_TRUE(feed(text(answer, "feedback_id"), {{"", right ? 0.0 : 1.0}}).ok());
  }
  EXPECT_EQ(text(ask(), "models"), "plus20");
  const ApplicationStatistics statistics = harness_->application_statistics();
  EXPECT_EQ(statistics.feedbacks, 50u);
  EXPECT_EQ(statistics.models[0].feedbacks, static_cast<uint64_t>(statistics.models[0].losses));
  EXPECT_EQ(statistics.models[2].losses, 0);
  EXPECT_EQ(statistics.models[2].weight, 1);
}

TEST_F(SelectedInferenceTest, LabelsAreComparedWithEachModel) {
  use("policy = 'exp4'\nloss_scale = 20");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(feed_label(text(ask(), "feedback_id"), {12, 14, 16, 18}).ok());
  const ApplicationStatistics statistics = harness_->application_statistics();
  EXPECT_NEAR(statistics.models[0].losses, 50, 1e-9);
  EXPECT_EQ(statistics.models[1].losses, 0);
  EXPECT_GT(statistics.models[1].weight, statistics.models[0].weight);
  EXPECT_THAT(feed_label(text(ask(), "feedback_id"), {12}).message(), HasSubstr("needs 4"));
}

TEST_F(SelectedInferenceTest, FeedbackComesOnceInTimeAndFromTheSameKey) {
  use("policy = 'static'\nfeedback_window = '10m'");
  const auto mine = std::make_shared<Tenant>("mine");
  const auto other = std::make_shared<Tenant>("other");
  client_->forget();
  const std::string id = text(ask(), "feedback_id");
  EXPECT_EQ(feed("00", {{"", 1}}).code(), StatusCode::kNotFound);
  EXPECT_EQ(feed(std::string(32, 'z'), {{"", 1}}).code(), StatusCode::kNotFound);
  EXPECT_EQ(feed(std::string(32, '0'), {{"", 1}}).code(), StatusCode::kNotFound);
  EXPECT_EQ(feed(id, {{"", 1}}, other).code(), StatusCode::kNotFound) << "another key";
  EXPECT_EQ(feed(id, {{"", NAN}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(feed(id, {{"plus10", 1}}).code(), StatusCode::kInvalidArgument) << "it was not asked";
  EXPECT_EQ(feed(id, {}).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(feed(id, {{"", 1}}).ok()) << "what was refused did not count";
  EXPECT_EQ(feed(id, {{"", 1}}).code(), StatusCode::kAlreadyExists);
  const std::string late = text(ask(), "feedback_id");
  harness_->advance(Duration::seconds(601));
  EXPECT_THAT(feed(late, {{"", 1}}).message(), HasSubstr("too old"));
  EXPECT_EQ(harness_->application_statistics().feedbacks, 1u);
}

TEST_F(SelectedInferenceTest, OneLossIsNotEnoughForSeveralModels) {
  use("policy = 'majority'");
  const std::string id = text(ask(), "feedback_id");
  EXPECT_THAT(feed(id, {{"", 0.5}}).message(), HasSubstr("asked 3 models"));
  EXPECT_TRUE(feed(id, {{"double", 0.5}, {"plus10", 1}}).ok());
}

TEST_F(SelectedInferenceTest, ContextsLearnApart) {
  use("policy = { name = 'epsilon_greedy', epsilon = 0 }\ncontexts_max = 2");
  const auto learn = [&](std::string_view context, const std::string& best) {
    for (int i = 0; i < 20; ++i) {
      Query query = this->query();
      query.context = context;
      Answer& answer = ask(query);
      ASSERT_TRUE(feed(text(answer, "feedback_id"), {{"", text(answer, "models") == best ? 0.0 : 1.0}}).ok());
    }
  };
  const auto chosen = [&](std::string_view context) {
    Query query = this->query();
    query.context = context;
    return text(ask(query), "models");
  };
  learn("one", "plus10");
  learn("two", "plus20");
  EXPECT_EQ(chosen("one"), "plus10");
  EXPECT_EQ(chosen("two"), "plus20");
  EXPECT_EQ(chosen("new"), chosen("")) << "it begins as the application";
  EXPECT_EQ(harness_->application_statistics().contexts, 2u);
  learn("three", "double");
  EXPECT_EQ(harness_->application_statistics().contexts, 2u);
}

TEST_F(SelectedInferenceTest, WhatWasLearnedIsRestored) {
  const std::string settings = "policy = { name = 'epsilon_greedy', epsilon = 0 }\ncontexts_max = 1";
  use(settings);
  harness_->inference().restore({});
  EXPECT_TRUE(harness_->inference().take_changes().empty());
  const auto learn = [&](std::string_view context) {
    Query query = this->query();
    query.context = context;
    ASSERT_TRUE(feed(text(ask(query), "feedback_id"), {{"", 1}}).ok());
  };
  learn("one");
  learn("");
  const auto changes = harness_->inference().take_changes();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_TRUE(harness_->inference().take_changes().empty());
  const std::string next = text(ask(), "models");
  learn("two");
  const auto evicted = harness_->inference().take_changes();
  ASSERT_EQ(evicted.size(), 3u);
  EXPECT_EQ(evicted[1].learned.context, "one");
  EXPECT_FALSE(evicted[1].learned.state.has_value()) << "it was evicted";
  use(settings);
  EXPECT_EQ(text(ask(), "models"), "double");
  harness_->inference().restore(changes);
  EXPECT_EQ(text(ask(), "models"), next);
  use("policy = 'exp3'");
  harness_->inference().restore(changes);
  EXPECT_NEAR(harness_->application_statistics().models[0].weight, 1.0 / 3, 1e-9) << "another policy begins anew";
}

TEST_F(SelectedInferenceTest, ModelsAndUnknownNamesTakeNoFeedback) {
  use("policy = 'static'");
  const auto observe = [&](std::string_view name) {
    return harness_->inference().observe(
        {.name = name, .version = "", .inputs = {}, .outputs = {}, .feedback_id = "1"});
  };
  EXPECT_EQ(observe("double").code(), StatusCode::kUnimplemented);
  EXPECT_THAT(observe("nothing").message(), HasSubstr("unknown application 'nothing'"));
}

TEST_F(SelectedInferenceTest, ShowsMetrics) {
  use("policy = 'majority'");
  ask();
  EXPECT_THAT(SelectionMetrics(harness_->inference()).text(),
              AllOf(HasSubstr("foliot_application_answers_total{application=\"doubling\"} 1"),
                    HasSubstr("foliot_application_selections_total{application=\"doubling\",model=\"plus10\"} 1")));
}

// ---- Files

std::string error_of_file(std::string_view text) { return application_of("wrong", text).status.message(); }

TEST(ApplicationTest, FilesAreRead) {
  const Application read = application_of("app", R"(models = ["a", "b"]
output = "label"
classes = true
tolerance = 0.5
confidence_min = 0.25
default_slo = "20ms"
feedback_window = "1m"
feedback_max = 7
[policy]
name = "exp4"
eta = 0.1
[default]
label = [1, 2]
known = true
)");
  ASSERT_TRUE(read.status.ok()) << read.status.message();
  EXPECT_EQ(read.models, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(read.asks_several);
  EXPECT_EQ(read.agreement.output, "label");
  EXPECT_EQ(read.defaults.at("label"), (std::vector<double>{1, 2}));
  EXPECT_EQ(read.defaults.at("known"), (std::vector<double>{1}));
  EXPECT_EQ(read.default_slo, Duration::milliseconds(20));
  EXPECT_EQ(read.feedback_max, 7u);
}

TEST(ApplicationTest, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(error_of_file("policy = 'exp3'"), AllOf(HasSubstr("application.toml:1:"), HasSubstr("'models'")));
  EXPECT_THAT(error_of_file("models = ['a', 'a']\npolicy = 'exp3'"), HasSubstr("'a' twice"));
  EXPECT_THAT(error_of_file("models = ['wrong']\npolicy = 'exp3'"), HasSubstr("the application itself"));
  EXPECT_THAT(error_of_file("models = ['a']\n\npolicy = 'exp9'"), AllOf(HasSubstr("toml:3:"), HasSubstr("'exp9'")));
  EXPECT_THAT(error_of_file("models = ['a']"), HasSubstr("'policy'"));
  EXPECT_THAT(error_of_file("models = ['a']\n[policy]\nname = 'exp3'\neta = -1"),
              AllOf(HasSubstr("toml:4:"), HasSubstr("'eta'")));
  EXPECT_THAT(error_of_file("models = ['a']\n[policy]\nname = 'exp3'\nzeta = 1"), HasSubstr("unknown key 'zeta'"));
  EXPECT_THAT(error_of_file("models = ['a']\npolicy = 'exp3'\nconfidence = 1"), HasSubstr("unknown key 'confidence'"));
  EXPECT_THAT(error_of_file("models = ['a']\npolicy = 'exp3'\nconfidence_min = 0.5"), HasSubstr("[default]"));
  EXPECT_THAT(error_of_file("models = ['a']\npolicy = 'exp3'\n[default]\ny = 'x'"), HasSubstr("'y'"));
  EXPECT_THAT(error_of_file("models = ["), HasSubstr("application.toml:1"));
}

TEST(ApplicationTest, RepositoriesAreScanned) {
  const auto repository = own_folder("scanned");
  std::filesystem::create_directories(repository / "b");
  std::filesystem::create_directories(repository / "a");
  std::filesystem::create_directories(repository / "model");
  std::ofstream(repository / "b/application.toml") << "models = ['model']\npolicy = 'static'";
  std::ofstream(repository / "a/application.toml") << "models = ['model']\npolicy = 'static'";
  std::ofstream(repository / "a/model.onnx") << "x";
  const auto applications = scan_applications(repository);
  ASSERT_TRUE(applications.ok());
  ASSERT_EQ(applications->size(), 2u);
  EXPECT_THAT((*applications)[0].status.message(), HasSubstr("model.onnx"));
  EXPECT_EQ((*applications)[1].name, "b");
  EXPECT_TRUE((*applications)[1].status.ok());
  std::filesystem::remove_all(repository);
}

TEST(ApplicationInterfaceTest, SettingsMustFitTheModels) {
  const auto reason = [](
                          std::string_view settings,
                          const std::function<void(ModelInfo&)>& change = [](ModelInfo&) {}) {
    const Application application = application_of("app", "models = ['a']\n" + std::string(settings));
    EXPECT_TRUE(application.status.ok()) << application.status.message();
    ModelInfo model = doubling_model(ModelId(1));
    change(model);
    const auto entry =
        std::make_shared<const CatalogEntry>(CatalogEntry{.name = "a",
                                                          .version = "1",
                                                          .state = ModelState::kReady,
                                                          .reason = "",
                                                          .info = std::make_shared<const ModelInfo>(model)});
    return interface_of(application, std::vector<Catalog::EntryPtr>{entry}).reason;
  };
  EXPECT_EQ(reason("policy = 'exp4'"), "");
  EXPECT_THAT(reason("policy = 'exp4'\noutput = 'z'"), HasSubstr("no output 'z'"));
  EXPECT_THAT(reason("policy = 'exp4'\n[default]\nz = 1"), HasSubstr("no output 'z'"));
  EXPECT_THAT(reason("policy = 'exp4'\n[default]\ny = [1, 2, 3]"), HasSubstr("3 values"));
  const auto half = [](ModelInfo& model) { model.outputs[0].type = DataType::kFloat16; };
  EXPECT_THAT(reason("policy = 'exp4'", half), HasSubstr("FP16"));
  EXPECT_EQ(reason("policy = 'exp3'", half), "");
}

// ---- What is kept for feedback

TEST(FeedbackStoreTest, IsBounded) {
  FeedbackStore store(Duration::seconds(60), 3, 1 << 20);
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(store.add({}, TimePoint()));
  EXPECT_EQ(store.size(), 3u);
  EXPECT_FALSE(store.find(ids[0], TenantId(), TimePoint()).ok()) << "the oldest went";
  EXPECT_TRUE(store.find(ids[3], TenantId(), TimePoint()).ok());
  ids.push_back(store.add({}, TimePoint() + Duration::seconds(61)));
  EXPECT_EQ(store.size(), 1u) << "the others are too old";
  const Prediction::Output large{{}, {}, false, std::string(40 << 10, 'x')};
  for (int i = 0; i < 100; ++i)
    store.add({.tenant = {}, .context = "", .selection = {}, .outputs = {large}}, TimePoint() + Duration::seconds(61));
  EXPECT_EQ(store.size(), 3u);
  FeedbackStore small(Duration::seconds(60), 1000, 100 << 10);
  for (int i = 0; i < 100; ++i)
    small.add({.tenant = {}, .context = "", .selection = {}, .outputs = {large}}, TimePoint());
  EXPECT_EQ(small.size(), 2u);
}

TEST(FeedbackStoreTest, LargeOutputsAreNotKept) {
  FeedbackStore store(Duration::seconds(60), 3);
  const Prediction::Output large{{}, {}, false, std::string(FeedbackStore::kOutputBytesMax + 1, 'x')};
  const std::string id = store.add({.tenant = {}, .context = "", .selection = {}, .outputs = {large}}, TimePoint());
  EXPECT_FALSE((*store.find(id, TenantId(), TimePoint()))->outputs[0].has_value());
}

class FeedbackList : public FeedbackSink {
 public:
  void add_feedback(FeedbackRecord record) override { records.push_back(std::move(record)); }
  std::vector<FeedbackRecord> records;
};

TEST_F(SelectedInferenceTest, FeedbackIsLoggedWithTheProbabilities) {
  FeedbackList log;
  use("policy = { name = 'split', weights = { double = 3, plus10 = 1, plus20 = 4 } }");
  harness_->selected().log_feedback(log);
  harness_->withdraw("plus20");
  Query query = this->query();
  query.context = "user";
  Answer& answer = ask(query);
  const std::string id = text(answer, "feedback_id");
  const std::string asked = text(answer, "models");
  harness_->advance(Duration::seconds(1));
  EXPECT_FALSE(feed(id, {{"", NAN}}).ok());
  EXPECT_TRUE(log.records.empty());
  ASSERT_TRUE(feed(id, {{"", 7}}).ok());
  ASSERT_EQ(log.records.size(), 1u);
  const FeedbackRecord& record = log.records.front();
  EXPECT_EQ(record.id, id);
  EXPECT_EQ(record.application, "doubling");
  EXPECT_EQ(record.policy, "split");
  EXPECT_EQ(record.context, "user");
  EXPECT_EQ(record.observed - record.answered, Duration::seconds(1));
  ASSERT_EQ(record.models.size(), 3u);
  EXPECT_EQ(record.models[0].probability, 0.75);
  EXPECT_EQ(record.models[1].probability, 0.25);
  EXPECT_EQ(record.models[2].probability, std::nullopt) << "it was not available";
  for (const FeedbackRecord::Model& model : record.models) {
    EXPECT_EQ(model.asked, model.name == asked);
    EXPECT_EQ(model.loss, model.name == asked ? std::optional(1.0) : std::nullopt) << "clipped";
  }
}

TEST_F(SelectedInferenceTest, AnotherDefinitionIsForNewCalls) {
  use("policy = { name = 'static', model = 'plus10' }");
  harness_->hold();
  const CallId under_way = client_->started(query());
  EXPECT_TRUE(
      harness_->replace({"models = ['plus20', 'double']\npolicy = { name = 'static', model = 'plus20' }"}).empty());
  harness_->release();
  client_->await(1);
  Answer& answer = client_->answer(under_way);
  EXPECT_EQ(values(answer), (std::vector<float>{12, 14, 16, 18})) << "by the definition it began with";
  EXPECT_EQ(text(answer, "models"), "plus10");
  EXPECT_EQ(text(answer, "feedback_id"), "none") << "it has another policy's";
  EXPECT_EQ(text(ask(), "models"), "plus20");
  EXPECT_EQ(harness_->catalog().find("doubling")->models, (std::vector<std::string>{"plus20", "double"}));
  EXPECT_EQ(harness_->application_statistics().answers, 2u);
}

TEST_F(SelectedInferenceTest, WhatWasLearnedOutlivesAnotherDefinition) {
  use("policy = { name = 'epsilon_greedy', epsilon = 0 }");
  const std::string id = text(ask(), "feedback_id");
  const std::string waits = text(ask(), "feedback_id");
  ASSERT_TRUE(feed(id, {{"", 1}}).ok());
  EXPECT_EQ(text(ask(), "models"), "plus10");
  const std::string models(kThree);
  EXPECT_TRUE(harness_->replace({models + "policy = { name = 'epsilon_greedy', epsilon = 0 }\ntolerance = 3"}).empty());
  EXPECT_EQ(text(ask(), "models"), "plus10") << "it learns as before";
  EXPECT_TRUE(feed(waits, {{"", 1}}).ok());
  const std::string gone = text(ask(), "feedback_id");
  EXPECT_TRUE(harness_->replace({models + "policy = 'ucb1'"}).empty());
  EXPECT_EQ(text(ask(), "models"), "double") << "another policy begins anew";
  EXPECT_EQ(feed(gone, {{"", 1}}).code(), StatusCode::kNotFound);
}

TEST_F(SelectedInferenceTest, ADefinitionThatCannotBeServedKeepsTheOneBefore) {
  use("policy = 'static'");
  using testing::ElementsAre;
  EXPECT_THAT(harness_->replace({"models = ['double']\npolicy = 'exp5'"}),
              ElementsAre(AllOf(HasSubstr("application 'doubling'"), HasSubstr("unknown policy 'exp5'"))));
  EXPECT_EQ(text(ask(), "models"), "double");
  EXPECT_EQ(harness_->catalog().find("doubling")->state, ModelState::kReady);
  EXPECT_THAT(harness_->catalog().find("doubling")->reason,
              AllOf(HasSubstr("application.toml as it is now is not taken"), HasSubstr("unknown policy 'exp5'")));
  // One whose models are not there yet waits for them.
  EXPECT_THAT(harness_->replace({"models = ['later']\npolicy = 'static'"}),
              ElementsAre(HasSubstr("'later' is not in")));
  EXPECT_EQ(text(ask(), "models"), "double");
  harness_->serve("later");
  EXPECT_EQ(text(ask(), "models"), "later");
  EXPECT_EQ(harness_->catalog().find("doubling")->reason, "");
}

TEST_F(SelectedInferenceTest, ApplicationsComeAndGo) {
  use("policy = 'static'");
  const std::string same = std::string(kThree) + "policy = 'static'";
  EXPECT_TRUE(harness_->replace({same, "models = ['plus20']\npolicy = 'static'"}).empty());
  Query other = query();
  other.name = "other";
  EXPECT_EQ(text(ask(other), "models"), "plus20");
  harness_->hold();
  const CallId under_way = client_->started(query());
  EXPECT_TRUE(harness_->replace({}).empty());
  EXPECT_EQ(harness_->catalog().find("doubling"), nullptr);
  EXPECT_EQ(client_->error_of(query()).http_status, 404u);
  EXPECT_EQ(feed("00", {{"", 1}}).code(), StatusCode::kNotFound);
  harness_->release();
  client_->await(2);
  EXPECT_TRUE(client_->answer(under_way).served()) << "it was under way";
  EXPECT_TRUE(harness_->replace({same}).empty());
  EXPECT_EQ(text(ask(), "models"), "double") << "it is back";
}

}  // namespace
}  // namespace foliot
