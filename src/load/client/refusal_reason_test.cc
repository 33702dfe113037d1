#include "load/client/refusal_reason.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(RefusalReasonTest, FindsTheWord) {
  EXPECT_EQ(find_refusal("model 'm' refused the request: overload; earliest completion 81.000 ms"), Refusal::kOverload);
  EXPECT_EQ(find_refusal("model 'm' refused the request: worker_lost: device 3"), Refusal::kWorkerLost);
  EXPECT_EQ(find_refusal("late"), Refusal::kLate);
}

TEST(RefusalReasonTest, NamesOfModelsDoNotCount) {
  EXPECT_EQ(find_refusal("model 'overload' refused the request: expired"), Refusal::kExpired);
  EXPECT_EQ(find_refusal("unknown model 'late'"), Refusal::kNone);
}

TEST(RefusalReasonTest, PartsOfWordsDoNotCount) {
  EXPECT_EQ(find_refusal("the template is translated later"), Refusal::kNone);
  EXPECT_EQ(find_refusal("late_binding"), Refusal::kNone);
}

TEST(RefusalReasonTest, OtherMessagesAreNoRefusals) {
  EXPECT_EQ(find_refusal(""), Refusal::kNone);
  EXPECT_EQ(find_refusal("an open quote 'late"), Refusal::kNone);
  EXPECT_EQ(find_refusal("failed to connect to all addresses"), Refusal::kNone);
}

}  // namespace
}  // namespace foliot
