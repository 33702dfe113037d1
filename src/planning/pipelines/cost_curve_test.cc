#include "planning/pipelines/cost_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "foundation/base/test_time.h"
#include "planning/pipelines/test_pipeline.h"

namespace foliot {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CostCurveTest, IsPlannedForEachSloAndHasTheOneThatWasAskedFor) {
  const PlannedPipeline pipeline =
      chain({{linear_kind("cpu", 0.1, ms(4), ms(6)), linear_kind("gpu", 1, ms(3), ms(1))}});
  const QueryTrace trace = QueryTrace::draw(pipeline, gamma_arrivals(150, 2, Duration::seconds(30), 1), 1);
  const std::vector<CostPoint> curve = cost_curve(pipeline, trace, {ms(33)}, {.threads = 1}, 6);
  ASSERT_EQ(curve.size(), 7u);
  EXPECT_TRUE(std::is_sorted(curve.begin(), curve.end(), [](auto& a, auto& b) { return a.slo < b.slo; }));
  EXPECT_EQ(curve.front().slo, ms(4).scaled(1.05));
  EXPECT_TRUE(std::any_of(curve.begin(), curve.end(), [](const CostPoint& point) { return point.slo == ms(33); }));
  const auto planned = plan_pipeline(pipeline, trace, {curve[3].slo});
  ASSERT_TRUE(planned.ok());
  EXPECT_EQ(curve[3].cost, planned->cost);
  EXPECT_GT(curve.front().cost, curve.back().cost);
}

TEST(CostCurveTest, ThePictureHasALineForEachAndEscapesTheTitle) {
  const std::string svg = draw_cost_curve("a < b & c", {{ms(10), 2, 9}, {ms(20), 1, 8}}, ms(10));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("class=\"line plan\""));
  EXPECT_THAT(svg, HasSubstr("class=\"line coarse\""));
  EXPECT_THAT(svg, HasSubstr(">10 ms<"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

}  // namespace
}  // namespace foliot
