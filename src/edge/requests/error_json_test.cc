#include "edge/requests/error_json.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(ErrorJsonTest, HasWhatIsKnown) {
  CallError error = call_error(Status::internal("a \"b\""));
  EXPECT_EQ(to_json(error), R"({"error":"a \"b\""})");
  error.message = "m";
  error.reason = "unmeetable";
  EXPECT_EQ(to_json(error), R"({"error":"m","reason":"unmeetable"})");
  error.earliest_completion = Duration::microseconds(12'345);
  error.request = RequestId(7);
  EXPECT_EQ(to_json(error), R"({"error":"m","reason":"unmeetable","earliest_completion_ms":12.345,"request":"7"})");
}

}  // namespace
}  // namespace foliot
