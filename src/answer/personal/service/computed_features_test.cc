// Personal models whose features another model computes: a fake one, of one input x of two numbers and the features
// s x, where s is of its version.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <future>
#include <limits>
#include <thread>

#include "answer/inference/conformance/fake_inference.h"
#include "answer/inference/served_names.h"
#include "answer/personal/items/item_input.h"
#include "answer/personal/items/test_items.h"
#include "answer/personal/service/personal_models.h"
#include "foundation/platform/clock.h"
#include "foundation/store/disk_storage.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

class ComputedFeaturesTest : public ::testing::Test {
 protected:
  ComputedFeaturesTest() {
    std::filesystem::create_directories(repository() / "movies");
    write_settings("");
    put_embedder("1", 2);
  }
  ~ComputedFeaturesTest() override { models_.reset(); }

  void write_settings(const std::string& more) {
    std::ofstream(repository() / "movies" / "personal.toml")
        << "features = \"embed\"\nprior = \"zero\"\n[exploration]\nname = \"greedy\"\npool = 0\n" + more;
  }
  void put_embedder(const std::string& version, float scale, int64_t features = 2, bool batching = true) {
    scale_ = scale;
    ModelInfo info;
    info.name = "embed";
    info.version = version;
    info.content = "content of " + version;
    info.batching = batching;
    info.only().batch_sizes = {1};
    if (batching) info.only().batch_sizes.push_back(64);
    info.inputs = {{"x", DataType::kFloat32, {2}, {""}}};
    info.outputs = {{"y", DataType::kFloat32, {features}, {""}}};
    info.buckets = {Bucket{}};
    catalog_.put({.name = "embed",
                  .version = version,
                  .state = ModelState::kReady,
                  .reason = {},
                  .info = std::make_shared<const ModelInfo>(info)});
  }
  std::vector<std::string> compute(const Query& query) {
    ++asked_;
    rows_ += static_cast<uint64_t>(query.inputs.front().shape[0]);
    const std::span<const std::byte> bytes = query.inputs.front().bytes;
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    for (float& value : values) value *= scale_;
    return {std::string(reinterpret_cast<const char*>(values.data()), bytes.size())};
  }
  void open() {
    models_ = std::make_unique<PersonalModels>(
        PersonalModels::Options{.now = monotonic_now,
                                .on_failure = [this](const std::string& line) { failure_ = line; }},
        catalog_);
    models_->use(inference_, 1024);
    const Status status = models_->open(scan_personal(repository()).value(), folder_.path / "observations");
    ASSERT_TRUE(status.ok()) << status.message();
    settle();
  }
  // Until the catalog is followed.
  void settle() {
    models_->wait_for_features([] { return false; });
  }
  std::filesystem::path repository() const { return folder_.path / "repository"; }

  using Vectors = std::vector<std::array<float, 2>>;
  PersonalCall call(const Vectors& inputs = {}) const {
    PersonalCall call{.model = "movies", .arrival = monotonic_now()};
    if (inputs.empty()) return call;
    std::string bytes(reinterpret_cast<const char*>(inputs.data()), inputs.size() * sizeof(inputs[0]));
    call.inputs = std::make_shared<const ItemTensors>(
        ItemTensors{{"x", "FP32", {static_cast<int64_t>(inputs.size()), 2}, std::move(bytes)}});
    return call;
  }
  using Result = std::future<PersonalResult>;
  static Result start(const std::function<void(PersonalDone)>& start) {
    auto result = std::make_shared<std::promise<PersonalResult>>();
    start([result](PersonalResult given) { result->set_value(std::move(given)); });
    return result->get_future();
  }
  Result start_predict(const PersonalCall& given, std::vector<UserItem> pairs) {
    return start([&](PersonalDone done) { models_->predict(given, std::move(pairs), std::move(done)); });
  }
  PersonalResult predict(const PersonalCall& given, std::vector<UserItem> pairs) {
    return start_predict(given, std::move(pairs)).get();
  }
  PersonalResult observe(const PersonalCall& given, std::vector<ItemObservation> observations) {
    return start([&](PersonalDone done) { models_->observe(given, std::move(observations), std::move(done)); }).get();
  }
  PersonalResult top_k(const PersonalCall& given, TopKQuery query) {
    return start([&](PersonalDone done) { models_->top_k(given, std::move(query), std::move(done)); }).get();
  }
  float prediction(uint64_t user, uint64_t item) {
    const PersonalResult result = predict(call(), {{user, item}});
    const auto* const answer = std::get_if<PersonalAnswer>(&result);
    return answer != nullptr ? answer->predictions.at(0) : -1;
  }
  static CallError error(const PersonalResult& result) {
    const auto* const error = std::get_if<CallError>(&result);
    return error != nullptr ? *error : CallError();
  }
  // Of the item with x = (1, 0), after it was rated 3: the ridge of one observation.
  static float expected(float scale) { return 3 * scale * scale / (scale * scale + 1); }
  // By the prior that follows from it (pooled_prior.h).
  static float expected_of_new_user(float scale) {
    const float share = scale * scale / (scale * scale + 1);
    return 3 * share / (share + static_cast<float>(PooledPrior::kOwnShare));
  }

  TestFolder folder_{"computed_features"};
  Catalog catalog_;
  ServedNames names_{catalog_};
  std::atomic<float> scale_{2};
  std::atomic<uint64_t> asked_{0};
  std::atomic<uint64_t> rows_{0};
  FakeInference inference_{names_, [this](const ModelInfo&, const Query& query) { return compute(query); },
                           monotonic_now};
  std::string failure_;
  std::unique_ptr<PersonalModels> models_;
};

TEST_F(ComputedFeaturesTest, LearnsFromTheNextRequestOn) {
  open();
  ASSERT_EQ(catalog_.find("movies")->state, ModelState::kReady);
  const PersonalResult observed = observe(call({{1, 0}}), {{7, 11, 3, 1}});
  EXPECT_EQ(std::get<PersonalAnswer>(observed).version, "1");
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(2));
  const PersonalResult others = predict(call({{0, 1}, {0.5, 0}, {1, 0}}), {{7, 12}, {7, 13}, {8, 11}});
  EXPECT_THAT(std::get<PersonalAnswer>(others).predictions,
              ElementsAre(0, FloatEq(expected(2) / 2), FloatEq(expected_of_new_user(2))))
      << "a user without observations has the prior";
  EXPECT_EQ(rows_, 3U) << "item 11 is known";
  predict(call({{0, 1}, {0, 1}}), {{7, 12}, {8, 14}});
  EXPECT_EQ(rows_, 3U) << "their input is in the cache";
  const FeatureSource::Counters& counters = models_->statistics().at(0).features->counters();
  EXPECT_EQ(counters.computed, 3U);
  EXPECT_EQ(counters.cached, 2U);
  EXPECT_EQ(counters.known, 2U);
}

TEST_F(ComputedFeaturesTest, ListsAreOfTheItemsThatAreNamed) {
  open();
  observe(call({{1, 0}}), {{7, 11, 3, 1}});
  const PersonalResult lists =
      top_k(call({{0.5, 0}, {1, 0}, {-1, 0}}), {.users = {7, 8}, .items = {13, 11, 14}, .k = 2});
  const std::vector<PersonalList>& given = std::get<PersonalAnswer>(lists).lists;
  ASSERT_EQ(given.size(), 2U);
  ASSERT_EQ(given[0].slots.size(), 2U);
  EXPECT_EQ(given[0].slots[0].item, 11U);
  EXPECT_FLOAT_EQ(given[0].slots[0].score, expected(2));
  EXPECT_EQ(given[0].slots[1].item, 13U);
  EXPECT_EQ(asked_, 2U) << "the two that are not known, in one call";
  EXPECT_THAT(error(top_k(call(), {.users = {7}, .k = 2})).message, HasSubstr("name the items to choose from"));
  EXPECT_THAT(error(top_k(call({{1, 0}, {1, 0}}), {.users = {7}, .items = {11, 11}, .k = 2})).message,
              HasSubstr("item 11 is named twice"));
}

TEST_F(ComputedFeaturesTest, ErrorsNameItemAndModel) {
  open();
  observe(call({{1, 0}}), {{7, 11, 3, 1}});
  const CallError unknown = error(predict(call(), {{7, 12}}));
  EXPECT_EQ(unknown.http_status, 404U);
  EXPECT_THAT(unknown.message, HasSubstr("item 12 is unknown"));
  const CallError other = error(predict(call({{2, 0}}), {{7, 11}}));
  EXPECT_EQ(other.http_status, 400U);
  EXPECT_THAT(other.message, HasSubstr("item 11 was observed with another input"));
  EXPECT_EQ(error(observe(call({{2, 0}}), {{8, 11, 3, 1}})).http_status, 400U);
  EXPECT_EQ(error(observe(call({{1, 1}, {2, 1}}), {{8, 15, 3, 1}, {8, 15, 3, 2}})).http_status, 400U);
  EXPECT_EQ(error(predict(call({{1, 1}, {2, 1}}), {{7, 15}})).http_status, 400U) << "two rows for one item";
  PersonalCall wrong = call();
  wrong.inputs = std::make_shared<const ItemTensors>(ItemTensors{{"z", "FP32", {1, 1}, "1234"}});
  EXPECT_THAT(error(predict(wrong, {{7, 15}})).message, HasSubstr("features of model 'embed': "));
  EXPECT_EQ(error(predict(wrong, {{7, 15}})).http_status, 400U);
  scale_ = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error(predict(call({{5, 5}}), {{7, 15}})).message, HasSubstr("must be finite"));
  models_->drain();
  EXPECT_TRUE(models_->wait_until_answered(Duration::seconds(60)));
}

TEST_F(ComputedFeaturesTest, RefusalsOfTheFeatureModelAreThoseOfTheCall) {
  open();
  observe(call({{1, 0}}), {{7, 11, 3, 1}});
  inference_.refuse(Refusal::kOverload, "busy");
  const CallError refused = error(predict(call({{0, 1}}), {{7, 12}}));
  EXPECT_EQ(refused.reason, "overload");
  EXPECT_EQ(refused.http_status, 503U);
  EXPECT_THAT(refused.message, HasSubstr("features of model 'embed'"));
  EXPECT_EQ(error(observe(call({{0, 1}}), {{7, 12, 1, 2}})).reason, "overload");
  EXPECT_EQ(models_->statistics().at(0).counters->refused[static_cast<size_t>(Refusal::kOverload)], 2U);
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(2)) << "known items need no model";
  inference_.refuse(Refusal::kNone);
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(observe(call({{0, 1}}), {{7, 12, 1, 2}})));
}

TEST_F(ComputedFeaturesTest, ANewVersionOfTheModelMakesAllFeaturesAnew) {
  open();
  observe(call({{1, 0}}), {{7, 11, 3, 1}});
  predict(call({{0.5, 0}}), {{7, 13}});
  put_embedder("2", 4);
  settle();
  EXPECT_EQ(catalog_.find("movies")->version, "2");
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(4));
  const PersonalResult other = predict(call({{0.5, 0}}), {{7, 13}});
  EXPECT_THAT(std::get<PersonalAnswer>(other).predictions, ElementsAre(FloatEq(expected(4) / 2)))
      << "not that of the cache";
  EXPECT_EQ(std::get<PersonalAnswer>(other).version, "2");
}

TEST_F(ComputedFeaturesTest, WhileAVersionIsMadeKnownItemsHaveTheOneBefore) {
  open();
  observe(call({{1, 0}}), {{7, 11, 3, 1}});
  predict(call({{0, 2}}), {{7, 16}});
  inference_.hold();
  const uint64_t before = asked_;
  put_embedder("2", 4);
  while (asked_ == before) std::this_thread::yield();
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(2));
  EXPECT_EQ(std::get<PersonalAnswer>(observe(call({{1, 0}}), {{8, 11, 3, 1}})).version, "1");
  EXPECT_THAT(error(observe(call({{0, 2}}), {{8, 16, 3, 2}})).message, HasSubstr("another version"))
      << "its features are in the cache, but not among those that are made anew";
  Result unknown = start_predict(call({{0, 1}}), {{7, 12}});
  while (asked_ == before + 1) std::this_thread::yield();
  inference_.release();
  EXPECT_THAT(error(unknown.get()).message, HasSubstr("another version"));
  settle();
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(4));
  EXPECT_FLOAT_EQ(prediction(8, 11), expected(4)) << "observed meanwhile";
}

TEST_F(ComputedFeaturesTest, KnownItemsAreServedWithoutTheModel) {
  open();
  observe(call({{1, 0}}), {{7, 11, 3, 1}});
  catalog_.remove("embed");
  settle();
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(2));
  const CallError unknown = error(predict(call({{0, 1}}), {{7, 12}}));
  EXPECT_EQ(unknown.http_status, 503U) << "the personal model is known";
  EXPECT_THAT(unknown.message, HasSubstr("'embed'"));
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kReady);
  EXPECT_THAT(catalog_.find("movies")->reason, HasSubstr("'embed', is not served"));
  put_embedder("1", 2);
  settle();
  EXPECT_EQ(catalog_.find("movies")->reason, "");
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(predict(call({{0, 1}}), {{7, 12}})));
}

TEST_F(ComputedFeaturesTest, ARestartComputesFeaturesAnew) {
  open();
  observe(call({{1, 0}}), {{7, 11, 3, 1}});
  observe(call({{1, 0}, {0, 3}}), {{8, 11, 3, 1}, {8, 12, 1, 2}});
  const float before = prediction(8, 12);
  models_.reset();
  put_embedder("1", 2);
  open();
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(2));
  EXPECT_FLOAT_EQ(prediction(8, 12), before);
  EXPECT_EQ(error(predict(call({{2, 0}}), {{7, 11}})).http_status, 400U) << "its input is known";
}

TEST_F(ComputedFeaturesTest, AModelWithoutBatchesIsAskedForEachItem) {
  put_embedder("1", 2, 2, false);
  open();
  observe(call({{1, 0}, {0, 1}}), {{7, 11, 3, 1}, {7, 12, 1, 2}});
  EXPECT_EQ(asked_, 2U);
  EXPECT_FLOAT_EQ(prediction(7, 11), expected(2));
  EXPECT_FLOAT_EQ(prediction(7, 12), expected(2) / 3);
}

TEST_F(ComputedFeaturesTest, IsServedOnceItsModelIs) {
  catalog_.remove("embed");
  open();
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kUnavailable);
  EXPECT_THAT(catalog_.find("movies")->reason, HasSubstr("'embed', is not served"));
  EXPECT_EQ(error(predict(call(), {{7, 11}})).http_status, 503U);
  put_embedder("1", 2, 0);
  settle();
  EXPECT_THAT(catalog_.find("movies")->reason, HasSubstr("has 0 numbers, limits 1 and 1000"));
  put_embedder("1", 2);
  settle();
  EXPECT_EQ(catalog_.find("movies")->state, ModelState::kReady);
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(observe(call({{1, 0}}), {{7, 11, 3, 1}})));
}

TEST_F(ComputedFeaturesTest, InputsOfKnownItemsHaveALimit) {
  write_settings("[limits]\ninputs = \"100B\"\n");
  open();
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(observe(call({{1, 0}}), {{7, 11, 3, 1}})));
  const CallError over = error(observe(call({{0, 1}, {1, 1}}), {{7, 12, 3, 2}, {7, 13, 3, 3}}));
  EXPECT_EQ(over.http_status, 507U);
  EXPECT_THAT(over.message, HasSubstr("limits.inputs"));
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(observe(call({{1, 0}}), {{8, 11, 3, 1}})));
  EXPECT_TRUE(std::holds_alternative<PersonalAnswer>(observe(call({{0, 1}}), {{7, 12, 3, 2}}))) << "nothing leaked";
}

TEST_F(ComputedFeaturesTest, WhatIsAskedWhenItStopsIsRefused) {
  open();
  inference_.hold();
  Result asked = start_predict(call({{0, 1}}), {{7, 12}});
  while (asked_ == 0) std::this_thread::yield();
  models_->drain();
  models_->stop();
  EXPECT_EQ(error(asked.get()).reason, "draining");
  inference_.release();
}

TEST(PersonalInputsTest, CallsWhoseRowsWereComputedByTheVersionBeforeAreAnsweredForKnownItems) {
  const TestFolder folder("personal_inputs");
  const auto before = std::make_shared<ComputedItems>(1, 5);
  const auto row = [&](float feature) {
    std::vector<float> padded(before->width());
    padded[0] = feature;
    return padded;
  };
  const auto rows_of = [&](uint64_t item) {
    const std::string input = encode_inputs({{"x", "FP32", {1}, "1234"}}, 1)->at(0);
    return ComputedRows{
        .by = before, .items = {item}, .inputs = {std::make_shared<const std::string>(input)}, .values = row(0.5F)};
  };
  const auto model = PersonalModel::open(DiskStorage::open(folder.path).value(),
                                         {.name = "1", .items = nullptr, .computed = before}, {})
                         .value();
  uint64_t observed = 0;
  const auto observe = [&](uint64_t item) {
    const std::vector<UserObservation> observations = {{++observed, item, 3}};
    const std::vector<size_t> places = {0};
    std::promise<Status> written;
    const Status status =
        model->observe(7, observations, rows_of(item), places, [&](const Status& over) { written.set_value(over); });
    return status.ok() ? written.get_future().get() : status;
  };
  ASSERT_TRUE(observe(11).ok());
  const auto next = std::make_shared<ComputedItems>(1, 6);
  next->add(11, row(-2));
  ASSERT_TRUE(model->swap({.name = "2", .items = nullptr, .computed = next}, PersonalModel::PoolCheck::kNone).ok());
  const UserPrediction predicted = model->predict(7, rows_of(11), 0).value();
  EXPECT_EQ(predicted.version, "2");
  EXPECT_GT(predicted.value, 0) << "3 was observed of these features";
  EXPECT_EQ(model->top_k_of(7, rows_of(11), 1)->places.at(0).item, 11U);
  EXPECT_TRUE(observe(11).ok());
  EXPECT_EQ(model->predict(7, rows_of(11), 0)->observations, 2U);
  for (const Status& status :
       {model->predict(7, rows_of(12), 0).status(), model->top_k_of(7, rows_of(12), 1).status(), observe(12)}) {
    EXPECT_THAT(status.message(), HasSubstr("another version of the feature model"));
  }
}

TEST(PersonalInputsTest, SnapshotsHoldTheInputsOfItems) {
  const TestFolder folder("personal_inputs");
  const auto computed = std::make_shared<ComputedItems>(1, 5);
  const std::string input = encode_inputs({{"x", "FP32", {1}, "1234"}}, 1)->at(0);
  const ComputedRows rows{.by = computed,
                          .items = {11},
                          .inputs = {std::make_shared<const std::string>(input)},
                          .values = std::vector<float>(computed->width(), 0.5F)};
  const auto open = [&] {
    return PersonalModel::open(DiskStorage::open(folder.path).value(),
                               {.name = "1", .items = nullptr, .computed = computed}, {})
        .value();
  };
  {
    const auto model = open();
    const std::vector<UserObservation> observations = {{1, 11, 3}};
    const std::vector<size_t> places = {0};
    std::promise<Status> written;
    ASSERT_TRUE(
        model->observe(7, observations, rows, places, [&](const Status& status) { written.set_value(status); }).ok());
    ASSERT_TRUE(written.get_future().get().ok());
    model->request_snapshot();
    while (model->snapshots() == 0) std::this_thread::yield();
  }
  const auto model = open();
  ASSERT_NE(model->input_of(11), nullptr);
  EXPECT_EQ(*model->input_of(11), input);
  EXPECT_EQ(model->input_of(12), nullptr);
  EXPECT_EQ(model->begin_version().size(), 1U);
}

}  // namespace
}  // namespace foliot
