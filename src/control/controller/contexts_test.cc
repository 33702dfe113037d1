#include "control/controller/contexts.h"

#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

Action infer(uint64_t id, OperatorRange range, ContextIndex context = 0) {
  return {.id = ActionId(id), .type = ActionType::kInfer, .range = range, .context = context, .rows = {}};
}

TEST(ContextsTest, WholePlansHoldNothing) {
  Contexts contexts;
  contexts.sent(infer(1, {}));
  contexts.sent(infer(2, {}));
  EXPECT_EQ(contexts.unfinished(0), nullptr);
  EXPECT_FALSE(contexts.may_begin(0, {0, 3})) << "others would write where its intermediates are";
  EXPECT_FALSE(contexts.over(infer(1, {}), true, at(2), ms(2)));
  EXPECT_FALSE(contexts.over(infer(2, {}), false, at(2), ms(2)));
  EXPECT_TRUE(contexts.may_begin(0, {0, 3}));
  EXPECT_FALSE(contexts.may_begin(0, {1, 3}));
  EXPECT_FALSE(contexts.may_begin(0, {0, 0})) << "of no operator";
  EXPECT_FALSE(contexts.may_begin(1, {})) << "there is no such context";
}

TEST(ContextsTest, ABatchHoldsItsContextUntilItsLastRangeIsOver) {
  Contexts contexts(2);
  contexts.sent(infer(1, {0, 3}));
  EXPECT_FALSE(contexts.may_begin(0, {}));
  EXPECT_TRUE(contexts.may_begin(1, {}));
  EXPECT_EQ(contexts.unfinished(0), nullptr) << "one at a time";
  EXPECT_TRUE(contexts.over(infer(1, {0, 3}), true, at(2), ms(2)));
  ASSERT_NE(contexts.unfinished(0), nullptr);
  EXPECT_EQ(contexts.unfinished(0)->range.last, 3u);
  EXPECT_FALSE(contexts.may_begin(0, {}));
  const OperatorRange rest{3, OperatorRange::kEnd};
  contexts.sent(infer(2, rest));
  EXPECT_FALSE(contexts.may_begin(0, {}));
  EXPECT_FALSE(contexts.over(infer(2, rest), true, at(5), ms(5)));
  EXPECT_EQ(contexts.took(infer(2, rest).context), ms(7));
  EXPECT_EQ(contexts.started(infer(2, rest).context), at(2));
  EXPECT_TRUE(contexts.may_begin(0, {0, 3}));
}

TEST(ContextsTest, AFailureOrGivingUpEndsTheBatch) {
  Contexts contexts;
  contexts.sent(infer(1, {0, 3}));
  EXPECT_FALSE(contexts.over(infer(1, {0, 3}), false, at(2), ms(2)));
  EXPECT_EQ(contexts.unfinished(0), nullptr);
  contexts.sent(infer(2, {0, 3}));
  EXPECT_TRUE(contexts.over(infer(2, {0, 3}), true, at(2), ms(2)));
  contexts.abandon(0);
  EXPECT_TRUE(contexts.may_begin(0, {}));
}

}  // namespace
}  // namespace foliot
