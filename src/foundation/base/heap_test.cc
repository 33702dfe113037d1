#include "foundation/base/heap.h"

#include <gtest/gtest.h>

#include <thread>

namespace foliot {
namespace {

TEST(Heap, CountsForEachThread) {
  const uint64_t before = heap_allocations();
  count_heap_allocation();
  std::thread([] {
    EXPECT_EQ(heap_allocations(), 0u);
    count_heap_allocation();
    EXPECT_EQ(heap_allocations(), 1u);
  }).join();
  EXPECT_EQ(heap_allocations(), before + 1);
}

TEST(Heap, CountsThoseOfExecForTheProcess) {
  const uint64_t before = exec_heap_allocations();
  std::thread([] { count_exec_heap_allocations(3); }).join();
  EXPECT_EQ(exec_heap_allocations(), before + 3);
}

}  // namespace
}  // namespace foliot
