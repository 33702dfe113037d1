#include "device/cpu/call_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
  for (size_t i = 0; i < 1000; ++i) objects.push_back(make_object(10'000));
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

TEST(CallMemory, ServesManyThreadsAtOnce) {
  const auto work = [] {
    const CallMemory call_memory;
    for (int round = 0; round < 1000; ++round) {
      std::vector<Object> objects;
      for (size_t bytes = 1; bytes < 100; bytes += 30) objects.push_back(make_object(bytes));
      for (size_t i = 0; i < objects.size(); ++i) ASSERT_TRUE(holds_sevens(objects[i], 1 + 30 * i));
    }
  };
  std::jthread another(work);
  work();
}

TEST(CallMemory, AlignsAsPosixDoes) {
  const CallMemory call_memory;
  for (size_t alignment = sizeof(void*); alignment <= 1 << 16; alignment *= 2) {
    void* object = nullptr;
    ASSERT_EQ(::posix_memalign(&object, alignment, 100), 0);
    std::memset(object, 7, 100);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % alignment, 0u);
    std::free(object);
  }
}

}  // namespace
}  // namespace foliot
