#include "control/policies/foliot/pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace foliot::foliot_policy {
namespace {

TimePoint pool_at(int64_t ms) { return TimePoint() + Duration::milliseconds(ms); }

// Two devices of kind "cpu", then two of kind "gpu"; model 0 runs on the former, 1 on the
// latter, an EXEC takes 5 ms.
class PoolTest : public testing::Test {
 protected:
  PoolTest() {
    for (const char* kind : {"cpu", "cpu", "gpu", "gpu"}) cluster_.add_device(cluster_.intern_kind(kind), 10);
    for (uint32_t id = 0; id < 2; ++id) {
      auto model = std::make_shared<ModelInfo>();
      model->id = ModelId(id);
      model->buckets.resize(1);
      model->runnables = {{.kind = id == 0 ? "cpu" : "gpu", .seed_exec = {{Duration::milliseconds(5)}}}};
      cluster_.add_model(model);
      board_.on_model_added(*model);
    }
    pool_.on_device_changed();
  }
  // One request each ms for a second.
  void ask(uint32_t model) {
    for (int64_t ms = 0; ms < 1000; ++ms) {
      board_.note_arrival({.model = ModelId(model), .arrival = pool_at(ms), .deadline = pool_at(ms + 20)}, pool_at(ms));
      pool_.on_request(ModelId(model), pool_at(ms));
    }
  }
  std::string members() const {
    std::string text;
    for (uint32_t id = 0; id < 4; ++id) text += pool_.contains(DeviceId(id)) ? 'x' : '-';
    return text;
  }

  Cluster cluster_;
  Board board_{cluster_};
  Pool pool_{board_, true};
};

TEST_F(PoolTest, EachKindHasAPoolOfWhatItsModelsNeed) {
  EXPECT_EQ(members(), "x-x-");
  ask(1);
  EXPECT_EQ(members(), "x-xx");
  pool_.on_model_removed(ModelId(1));
  EXPECT_EQ(members(), "x-x-");
  ask(0);
  EXPECT_EQ(members(), "xxx-");
}

TEST_F(PoolTest, AModelThatIsNotAskedAnyMoreComesToNeedLess) {
  ask(1);
  EXPECT_EQ(members(), "x-xx");
  for (int64_t ms = 1000; ms < 600'000; ms += 1000) pool_.refresh(pool_at(ms));
  EXPECT_EQ(members(), "x-x-");
}

TEST_F(PoolTest, AnotherDeviceOfTheKindStandsInForOneThatIsDown) {
  cluster_.devices[2].lose();
  pool_.on_device_changed();
  EXPECT_EQ(members(), "x-xx");
}

}  // namespace
}  // namespace foliot::foliot_policy
