#include "control/controller/scaled_targets.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(ScaledTargetsTest, OfAModelThatTwoWantTheMostCopiesCount) {
  ScaledTargets scaled;
  scaled.set(Autoscaler::kTasks, {{{ModelId(0), {.copies_least = 3}}, {ModelId(1), {.copies_least = 1}}}});
  scaled.set(Autoscaler::kPipelines, {{{ModelId(0), {.copies_least = 2, .kinds = {"gpu"}}},
                                       {ModelId(2), {.copies_least = 4, .kinds = {"cpu"}}}}});
  const std::map<ModelId, ModelTarget> expected{{ModelId(0), {.copies_least = 3, .kinds = {"gpu"}}},
                                                {ModelId(1), {.copies_least = 1}},
                                                {ModelId(2), {.copies_least = 4, .kinds = {"cpu"}}}};
  EXPECT_EQ(scaled.merged().models, expected);

  scaled.set(Autoscaler::kTasks, {});
  EXPECT_EQ(scaled.merged().of(ModelId(0)), (ModelTarget{.copies_least = 2, .kinds = {"gpu"}}));
  scaled.forget(ModelId(0));
  EXPECT_EQ(scaled.merged().of(ModelId(0)), ModelTarget());
}

}  // namespace
}  // namespace foliot
