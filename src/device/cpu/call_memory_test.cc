#include "device/cpu/call_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace foliot {
namespace {

using Object = std::unique_ptr<std::byte[]>;

Object make_object(size_t bytes) {
  Object object(new std::byte[bytes]);
  std::memset(object.get(), 7, bytes);
  return object;
}

bool holds_sevens(const Object& object, size_t bytes) {
  return std::all_of(object.get(), object.get() + bytes, [](std::byte byte) { return byte == std::byte{7}; });
}

TEST(CallMemory, GivesAlignedMemoryOfWhichNothingOverlaps) {
  const CallMemory call_memory;
  std::vector<Object> objects;
  for (size_t bytes = 0; bytes < 200; ++bytes) {
    objects.push_back(make_object(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(objects.back().get()) % alignof(std::max_align_t), 0u);
  }
  for (size_t bytes = 0; bytes < objects.size(); ++bytes) {
    EXPECT_TRUE(holds_sevens(objects[bytes], bytes)) << bytes;
    std::memset(objects[bytes].get(), 0, bytes);
  }
}

TEST(CallMemory, GoesOnWithTheHeapWhenItIsFull) {
  const CallMemory call_memory;
  std::vector<Object> objects;
  for (size_t i = 0; i < 100; ++i) objects.push_back(make_object(10'000));
  for (const Object& object : objects) EXPECT_TRUE(holds_sevens(object, 10'000));
}

TEST(CallMemory, LetsObjectsOutliveIt) {
  Object object;
  {
    const CallMemory call_memory;
    object = make_object(50);
  }
  {
    const CallMemory call_memory;
    const Object another = make_object(50);
    std::memset(another.get(), 0, 50);
  }
  EXPECT_TRUE(holds_sevens(object, 50));
  std::thread([&] { object.reset(); }).join();
}

TEST(CallMemory, BelongsToOneThreadAtATime) {
  const CallMemory call_memory;
  const Object object = make_object(50);
  std::thread([] {
    const CallMemory another;
    const Object other = make_object(50);
    std::memset(other.get(), 0, 50);
  }).join();
  EXPECT_TRUE(holds_sevens(object, 50));
}

}  // namespace
}  // namespace foliot
