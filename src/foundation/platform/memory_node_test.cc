#include "foundation/platform/memory_node.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace foliot {
namespace {

int policy_of_this_thread() {
  int policy = -1;
  return syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0 ? policy : -1;
}

TEST(MemoryNodeTest, HoldsWhileItLives) {
  const int before = policy_of_this_thread();
  {
    const MemoryNode node(0);
    // A system may not permit it.
    EXPECT_EQ(policy_of_this_thread(), node.set() ? MPOL_PREFERRED : before);
  }
  EXPECT_EQ(policy_of_this_thread(), before);
}

TEST(MemoryNodeTest, ANodeThatThereIsNotChangesNothing) {
  const int before = policy_of_this_thread();
  EXPECT_FALSE(MemoryNode(std::nullopt).set());
  EXPECT_FALSE(MemoryNode(1023).set());
  EXPECT_FALSE(MemoryNode(1'000'000).set());
  EXPECT_EQ(policy_of_this_thread(), before);
}

}  // namespace
}  // namespace foliot
