#include "planning/pipelines/planned_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/base/test_time.h"
#include "planning/pipelines/configuration.h"
#include "planning/pipelines/query_trace.h"
#include "planning/pipelines/test_pipeline.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StageSpec stage_spec(std::string name, std::map<std::string, std::vector<TensorName>> inputs, int line) {
  StageSpec spec;
  spec.name = std::move(name);
  spec.inputs = std::move(inputs);
  spec.line = line;
  return spec;
}

// decode -> cheap -> fine, if cheap's scores are low; fuse takes fine's scores, or cheap's.
PipelineSpec cascade() {
  PipelineSpec spec;
  spec.name = "cascade";
  spec.file = "pipeline.toml";
  spec.stages.push_back(stage_spec("decode", {{"image", {{"", "jpeg"}}}}, 3));
  spec.stages.push_back(stage_spec("cheap", {{"image", {{"decode", "image"}}}}, 7));
  spec.stages.push_back(stage_spec("fine", {{"image", {{"decode", "image"}}}}, 11));
  spec.stages.back().when.push_back({{"cheap", "scores"}, {}, 13});
  spec.stages.push_back(stage_spec("fuse", {{"scores", {{"fine", "scores"}, {"cheap", "scores"}}}}, 16));
  return spec;
}

PlanningInputs inputs_for(const std::vector<std::string>& stages) {
  PlanningInputs inputs{.profiles = {}, .prices = {{"cpu", 2}}, .profiles_file = "p.toml", .prices_file = "d.toml"};
  for (const std::string& stage : stages) {
    inputs.profiles[stage] = {stage, 1, {{"cpu", {1, 4}, {{0.5, {ms(1), ms(2)}}, {0.99, {ms(3), ms(5)}}}}}};
  }
  return inputs;
}

TEST(PlannedPipelineTest, StagesWithConditionsAreNamedWhereTheirVisitsAreUnknown) {
  PlanningInputs inputs = inputs_for({"decode", "cheap", "fine", "fuse"});
  EXPECT_THAT(stages_without_visits(cascade(), inputs.profiles), ElementsAre("fine"));
  inputs.profiles["fine"].has_visits = true;
  EXPECT_THAT(stages_without_visits(cascade(), inputs.profiles), ElementsAre());
}

TEST(PlannedPipelineTest, AKindWithoutDevicesIsLeftOut) {
  PlanningInputs inputs = inputs_for({"decode", "cheap", "fine", "fuse"});
  inputs.devices = {{"cpu", 0}};
  EXPECT_THAT(plan_stages(cascade(), inputs).status().message(), HasSubstr("d.toml: has 0 devices of each kind"));
  inputs.devices = {{"cpu", 3}, {"gpu", 0}};
  const auto planned = plan_stages(cascade(), inputs);
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(planned->devices.at("cpu"), 3u);
}

TEST(PlannedPipelineTest, ServedStagesHaveTheSameEdges) {
  const std::vector<TensorSource> call{{}};
  PipelineStage fine{.name = "fine", .model = nullptr, .bucket = {}, .inputs = {{{0, 0}}, call}};
  fine.requires_all = {{1, 0}};
  EXPECT_EQ(edges_of(fine), (StageEdges{{0, 1}, {{0}, {1}}}));
  const PipelineStage fuse{.name = "fuse", .model = nullptr, .bucket = {}, .inputs = {{{2, 0}, {1, 0}}}};
  EXPECT_EQ(edges_of(fuse), (StageEdges{{1, 2}, {{2, 1}}}));
  const PipelineStage filled{.name = "filled", .model = nullptr, .bucket = {}, .inputs = {{{2, 0}, call[0]}}};
  EXPECT_EQ(edges_of(filled), (StageEdges{{2}, {}})) << "it is visited all the same";
}

TEST(PlannedPipelineTest, StagesHaveParentsNeedsAndProbabilities) {
  PlanningInputs inputs = inputs_for({"decode", "cheap", "fine", "fuse"});
  inputs.profiles["cheap"].scale_factor = 0.8;
  inputs.profiles["fine"].scale_factor = 0.2;
  const auto planned = plan_stages(cascade(), inputs);
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  const auto& [decode, cheap, fine, fuse] =
      std::tie(planned->stages[0], planned->stages[1], planned->stages[2], planned->stages[3]);
  EXPECT_THAT(decode.parents, ElementsAre());
  EXPECT_THAT(fine.parents, ElementsAre(0, 1));
  EXPECT_THAT(fine.needs, ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(fuse.parents, ElementsAre(1, 2));
  EXPECT_THAT(fuse.needs, ElementsAre(ElementsAre(2, 1)));
  EXPECT_NEAR(cheap.probability, 0.8, 0.01);
  EXPECT_NEAR(fine.probability, 0.25, 0.01);
  EXPECT_NEAR(fuse.probability, 1, 0.02);
  EXPECT_NEAR(fuse.scale_factor, 0.8, 0.01);
  EXPECT_THAT(cheap.kinds.front().durations_ns, ElementsAre(0, 3'000'000, 5'000'000, 5'000'000, 5'000'000));

  const QueryTrace trace = QueryTrace::draw(*planned, std::vector<Duration>(20'000), 5);
  std::vector<double> visits(4);
  for (const VisitSet set : trace.visits) {
    for (uint32_t i = 0; i < 4; ++i) visits[i] += (set >> i & 1) / 20'000.0;
    EXPECT_TRUE((set & 4) == 0 || (set & 2) != 0) << "fine without cheap";
  }
  EXPECT_THAT(visits, ElementsAre(testing::DoubleNear(1, 1e-6), testing::DoubleNear(0.8, 0.02),
                                  testing::DoubleNear(0.2, 0.02), testing::DoubleNear(0.8, 0.02)));
}

// detect counts; crop and classify are visited for each element.
PipelineSpec street() {
  PipelineSpec spec;
  spec.name = "street";
  spec.file = "pipeline.toml";
  spec.stages.push_back(stage_spec("detect", {{"image", {{"", "photo"}}}}, 3));
  spec.stages.push_back(stage_spec("crop", {{"box", {{"detect", "boxes", true}}}}, 7));
  spec.stages.push_back(stage_spec("classify", {{"image", {{"crop", "image", true}}}}, 11));
  for (size_t i = 1; i < 3; ++i) spec.stages[i].for_each = {{"detect", "count"}, 4, 9};
  return spec;
}

TEST(PlannedPipelineTest, AQueryVisitsAStageForEachElement) {
  PlanningInputs inputs = inputs_for({"detect", "crop", "classify"});
  inputs.profiles["detect"].scale_factor = 0.5;
  inputs.profiles["crop"].scale_factor = 0.75;
  inputs.profiles["classify"].visits_shares = {0.75, 0, 0.125, 0.125};
  inputs.profiles["classify"].scale_factor = mean_of_shares(inputs.profiles["classify"].visits_shares);
  const auto planned = plan_stages(street(), inputs);
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  EXPECT_EQ(planned->stages[1].counted_by, 0u);
  EXPECT_THAT(planned->stages[1].parents, ElementsAre(0));
  EXPECT_THAT(planned->stages[2].parents, ElementsAre(0, 1));
  EXPECT_FALSE(planned->unconditional());
  const QueryTrace trace = QueryTrace::draw(*planned, std::vector<Duration>(20'000), 5);
  std::vector<double> visits(3);
  for (size_t query = 0; query < trace.size(); ++query) {
    for (uint32_t i = 0; i < 3; ++i) visits[i] += trace.visits_of(query, i) / 20'000.0;
  }
  // Of the half that detect something: one or two crops, and no, two or three classes.
  EXPECT_THAT(visits, ElementsAre(testing::DoubleNear(0.5, 0.02), testing::DoubleNear(0.75, 0.02),
                                  testing::DoubleNear(0.625, 0.02)));
  EXPECT_NEAR(planned->stages[1].scale_factor, 0.75, 0.01);
  EXPECT_NEAR(planned->stages[2].scale_factor, 0.625, 0.01);
  const QueryTrace last = trace.last(100);
  EXPECT_EQ(last.elements[1], std::vector<uint8_t>(trace.elements[1].end() - 100, trace.elements[1].end()));
  EXPECT_TRUE(last.elements[0].empty());
}

TEST(PlannedPipelineTest, MoreVisitsThanTheFileAllowsAreRefused) {
  const auto error = [](const PlanningInputs& inputs) { return plan_stages(street(), inputs).status().message(); };
  PlanningInputs inputs = inputs_for({"detect", "crop", "classify"});
  EXPECT_EQ(error(inputs), "");
  inputs.profiles["classify"].scale_factor = 4.5;
  EXPECT_EQ(error(inputs),
            "p.toml: stage 'classify' has 4.5 visits on average; a query visits it at most 4 times (for_each in the "
            "pipeline's file)");
  inputs.profiles["classify"] = inputs.profiles["crop"];
  inputs.profiles["classify"].visits_shares = {1, 0, 0, 0, 0, 1};
  EXPECT_THAT(error(inputs), HasSubstr("has shares of up to 5 visits; a query visits it at most 4 times"));
  inputs.profiles["detect"].scale_factor = 1.5;
  EXPECT_THAT(error(inputs), HasSubstr("stage 'detect' has 1.5 visits on average; a query visits it at most once"));
  inputs.profiles["detect"].scale_factor = 1;
  inputs.profiles["detect"].visits_shares = {0.5, 0.5};
  EXPECT_THAT(error(inputs), HasSubstr("stage 'detect' has a list of shares of numbers of visits"));
}

TEST(PlannedPipelineTest, ErrorsNameTheFile) {
  const auto error = [](const PlanningInputs& inputs) { return plan_stages(cascade(), inputs).status().message(); };
  EXPECT_EQ(error(inputs_for({"decode", "cheap"})),
            "p.toml: no [[profile]] of stage 'fine' (pipeline.toml:11): measure it, or add durations by hand");
  PlanningInputs inputs = inputs_for({"decode", "cheap", "fine", "fuse"});
  inputs.prices.clear();
  EXPECT_THAT(error(inputs), HasSubstr("d.toml: no price of 'cpu', on which p.toml measures stage 'decode'"));
  inputs = inputs_for({"decode", "cheap", "fine", "fuse"});
  inputs.profiles["cheap"].scale_factor = 0.3;
  inputs.profiles["fine"].scale_factor = 0.5;
  EXPECT_THAT(error(inputs), HasSubstr("stage 'fine' cannot be visited by 0.5 of the queries"));
}

TEST(ConfigurationTest, CostThroughputAndServiceTime) {
  PlannedPipeline pipeline = chain({{linear_kind("cpu", 0.5, ms(2), ms(1), 4), linear_kind("gpu", 3, ms(1), ms(1), 8)},
                                    {linear_kind("cpu", 0.25, ms(6), ms(2), 2)}});
  const Configuration configuration{{{1, 8, 2}, {0, 2, 3}}};
  EXPECT_EQ(cost(pipeline, configuration), 6.75);
  EXPECT_EQ(service_time(pipeline, configuration), ms(2 + 8));
  EXPECT_NEAR(throughput(pipeline.stages[0], configuration.stages[0]), 2 * 8 / 0.009, 1e-6);
  pipeline.stages[1].scale_factor = 0.5;
  EXPECT_NEAR(throughput(pipeline.stages[1], configuration.stages[1]), 3 * 2 / 0.010 / 0.5, 1e-6);
  const ModelTarget wanted = target(pipeline.stages[0], configuration.stages[0]);
  EXPECT_EQ(wanted, (ModelTarget{.copies_least = 2, .copies_most = 2, .kinds = {"gpu"}, .batch_most = 8}));
}

TEST(QueryTraceTest, ASampleHasItsShareOfEachPartOfTheTrace) {
  const PlannedPipeline pipeline = chain({{linear_kind("cpu", 1, ms(1), ms(1))}});
  std::vector<Duration> arrivals;
  for (int i = 0; i <= 10'000; ++i) arrivals.push_back(ms(100) + ms(10) * i);
  const QueryTrace trace = QueryTrace::draw(pipeline, arrivals, 1);
  EXPECT_NEAR(trace.rate(), 100, 1e-9);
  const QueryTrace sample = trace.sample(0.1, 10, ms(200));
  EXPECT_NEAR(static_cast<double>(sample.size()), 1000, 10);
  EXPECT_EQ(sample.visits.size(), sample.size());
  EXPECT_TRUE(std::is_sorted(sample.arrivals_ns.begin(), sample.arrivals_ns.end()));
  for (int block = 0; block < 10; ++block) {
    const Duration begin = ms(1200) * block;
    EXPECT_NEAR(static_cast<double>(sample.between(begin, begin + ms(1000)).size()), 100, 1) << "block " << block;
    EXPECT_EQ(sample.between(begin + ms(1000), begin + ms(1200)).size(), 0u) << "block " << block;
  }
  EXPECT_EQ(trace.sample(1, 10, ms(200)).size(), trace.size());
}

}  // namespace
}  // namespace foliot
