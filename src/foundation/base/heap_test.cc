#include "foundation/base/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

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

// What is before and behind the whole pages stays, and so does less than 1 MiB.
TEST(Heap, GivesBackWholePagesAlone) {
  std::vector<std::byte> large((4 << 20) + 100, std::byte{1}), small((1 << 20) - 1, std::byte{1});
  const std::span<std::byte> given = std::span(large).subspan(10, (3 << 20) + 50);
  give_back(given);
  give_back(small);
  EXPECT_EQ(given.front(), std::byte{1});
  EXPECT_EQ(given.back(), std::byte{1});
  EXPECT_EQ(large.back(), std::byte{1});
  const auto kept = std::ranges::count(given, std::byte{1});
  EXPECT_LE(kept, 2 * 4096);
  EXPECT_TRUE(std::ranges::all_of(small, [](std::byte each) { return each == std::byte{1}; }));
}

}  // namespace
}  // namespace foliot
