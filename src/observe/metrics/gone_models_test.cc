#include "observe/metrics/gone_models.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

TimePoint instant(int64_t seconds) { return TimePoint() + Duration::seconds(seconds); }

std::vector<std::string> expired(GoneModels& models, TimePoint now) {
  std::vector<std::string> names;
  models.expire(now, [&](const std::string& name) { names.push_back(name); });
  return names;
}

TEST(GoneModelsTest, AModelIsForgottenAWhileAfterItIsGone) {
  GoneModels models;
  models.on_model(ModelId(1), "a");
  models.on_removed(ModelId(1), instant(10));
  EXPECT_TRUE(expired(models, instant(10) + GoneModels::kTime - Duration::nanoseconds(1)).empty());
  EXPECT_EQ(expired(models, instant(10) + GoneModels::kTime), std::vector<std::string>{"a"});
  EXPECT_TRUE(expired(models, instant(100'000)).empty()) << "once";
}

TEST(GoneModelsTest, OneThatIsReplacedOrComesBackIsNot) {
  GoneModels models;
  models.on_model(ModelId(1), "a");
  models.on_model(ModelId(2), "a");
  models.on_removed(ModelId(1), instant(10));
  models.on_model(ModelId(3), "b");
  models.on_removed(ModelId(3), instant(10));
  models.on_model(ModelId(4), "b");
  EXPECT_TRUE(expired(models, instant(100'000)).empty());
}

TEST(GoneModelsTest, AnIdMayBeUsedAgain) {
  GoneModels models;
  models.on_model(ModelId(1), "a");
  models.on_removed(ModelId(1), instant(10));
  models.on_model(ModelId(1), "b");
  models.on_removed(ModelId(9), instant(10));  // never known
  EXPECT_EQ(expired(models, instant(100'000)), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace foliot
