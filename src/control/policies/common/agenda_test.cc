#include "control/policies/common/agenda.h"

#include <gtest/gtest.h>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

TEST(AgendaTest, ListsWhatChangedOnceAndInOrder) {
  Agenda agenda;
  agenda.changed(DeviceId(3));
  agenda.work_for(DeviceId(1));
  agenda.changed(DeviceId(3));
  EXPECT_EQ(agenda.next(at(0)), DeviceId(1));
  EXPECT_EQ(agenda.next(at(0)), DeviceId(3));
  EXPECT_EQ(agenda.next(at(0)), std::nullopt);
}

TEST(AgendaTest, LeavesABusyDeviceAloneUntilItIsFreeOrChanged) {
  Agenda agenda;
  agenda.busy(DeviceId(0), at(5));
  agenda.busy(DeviceId(0), at(7));
  agenda.work_for(DeviceId(0));
  EXPECT_EQ(agenda.next(at(7)), std::nullopt);
  EXPECT_GT(agenda.wake(), at(7));
  EXPECT_EQ(agenda.next(agenda.wake()), DeviceId(0));
  EXPECT_TRUE(agenda.wake().is_infinite());
  agenda.busy(DeviceId(0), at(20));
  agenda.changed(DeviceId(0));
  EXPECT_EQ(agenda.next(at(8)), DeviceId(0));
}

}  // namespace
}  // namespace foliot
