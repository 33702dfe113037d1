#include "edge/requests/json_feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(JsonFeedbackTest, LabelsAreFlattened) {
  EXPECT_THAT(parse_feedback(R"({"feedback_id":"x","label":7})")->label, ElementsAre(7));
  EXPECT_THAT(parse_feedback(R"({"feedback_id":"x","label":[[1,2.5],[true,-4]]})")->label, ElementsAre(1, 2.5, 1, -4));
  const Result<Feedback> feedback = parse_feedback(R"({"feedback_id":"x","label":[1,2]})");
  const Observation observation = feedback->observation();
  EXPECT_EQ(observation.feedback_id, "x");
  ASSERT_EQ(observation.outputs.size(), 1u);
  EXPECT_EQ(observation.outputs[0].bytes.size(), 16u);
}

TEST(JsonFeedbackTest, LossesAreOfModelsOrOfTheOne) {
  EXPECT_THAT(parse_feedback(R"({"feedback_id":"x","loss":0.5})")->losses, ElementsAre(Pair("", 0.5)));
  EXPECT_THAT(parse_feedback(R"({"feedback_id":"x","loss":{"a":0,"b":1}})")->losses,
              ElementsAre(Pair("a", 0), Pair("b", 1)));
}

TEST(JsonFeedbackTest, ErrorsNameTheMember) {
  const auto error = [](const char* body) { return parse_feedback(body).status().message(); };
  EXPECT_THAT(error("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(error("{"), HasSubstr("JSON object"));
  EXPECT_THAT(error(R"({"label":7})"), HasSubstr("'feedback_id'"));
  EXPECT_THAT(error(R"({"feedback_id":7,"label":7})"), HasSubstr("'feedback_id'"));
  EXPECT_THAT(error(R"({"feedback_id":"x"})"), HasSubstr("either"));
  EXPECT_THAT(error(R"({"feedback_id":"x","label":7,"loss":1})"), HasSubstr("either"));
  EXPECT_THAT(error(R"({"feedback_id":"x","label":"seven"})"), HasSubstr("'label'"));
  EXPECT_THAT(error(R"({"feedback_id":"x","loss":"NaN"})"), HasSubstr("'loss'"));
  EXPECT_THAT(error(R"({"feedback_id":"x","loss":NaN})"), HasSubstr("JSON object"));
  EXPECT_THAT(error(R"({"feedback_id":"x","loss":{"a":null}})"), HasSubstr("'loss'"));
  EXPECT_THAT(error(R"({"feedback_id":"x","losss":1})"), HasSubstr("'losss'"));
  EXPECT_THAT(
      error((R"({"feedback_id":"x","label":)" + std::string(40, '[') + "1" + std::string(40, ']') + "}").c_str()),
      HasSubstr("more than 33 deep"));
}

}  // namespace
}  // namespace foliot
