#include "foundation/platform/thread_starter.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace foliot {
namespace {

int nice_of_this_thread() { return getpriority(PRIO_PROCESS, 0); }

TEST(ThreadStarterTest, WhatABackgroundThreadAsksForHasThePriorityOfItsMaker) {
  auto starter = ThreadStarter::make();
  ASSERT_TRUE(starter.ok()) << starter.status().message();
  int background = -1;
  int started = -1;
  auto asking = Thread::start({.name = "background", .nice = 15}, [&] {
    background = nice_of_this_thread();
    auto thread = (*starter)->start({.name = "started"}, [&] { started = nice_of_this_thread(); });
    ASSERT_TRUE(thread.ok()) << thread.status().message();
  });
  ASSERT_TRUE(asking.ok()) << asking.status().message();
  asking->join();
  EXPECT_EQ(started, nice_of_this_thread());
  EXPECT_GE(background, 15);
}

TEST(ThreadStarterTest, ReportsWhyAThreadCannotStart) {
  auto starter = ThreadStarter::make();
  ASSERT_TRUE(starter.ok()) << starter.status().message();
  const auto thread = (*starter)->start({.name = "pinned", .cores = {kCoresMax - 1}}, [] {});
  EXPECT_EQ(thread.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
