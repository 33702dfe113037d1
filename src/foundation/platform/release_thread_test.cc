#include "foundation/platform/release_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

namespace foliot {
namespace {

constexpr uint64_t kLarge = ReleaseThread::kSmallBytes + 1;

// Says on which thread it was freed.
struct Object {
  explicit Object(uint64_t object_bytes) : bytes(object_bytes) {}
  ~Object() { freed.set_value(std::this_thread::get_id()); }
  uint64_t bytes;
  std::promise<std::thread::id> freed;
};

struct Shared {
  Shared(ReleaseThread& thread, uint64_t bytes) {
    auto object = std::make_unique<Object>(bytes);
    freed = object->freed.get_future();
    share = thread.share(std::move(object), [](const Object& each) { return each.bytes; });
  }
  std::future<std::thread::id> freed;
  std::shared_ptr<Object> share;
};

TEST(ReleaseThreadTest, FreesWhatIsLargeOnAThreadOfItsOwn) {
  ReleaseThread thread;
  Shared large(thread, kLarge), small(thread, ReleaseThread::kSmallBytes);
  auto other = large.share;
  large.share.reset();
  other.reset();
  EXPECT_NE(large.freed.get(), std::this_thread::get_id());
  small.share.reset();
  EXPECT_EQ(small.freed.get(), std::this_thread::get_id());
}

TEST(ReleaseThreadTest, WhatItHasGrownToCountsWhenItIsDropped) {
  ReleaseThread thread;
  Shared grown(thread, 0);
  grown.share->bytes = kLarge;
  grown.share.reset();
  EXPECT_NE(grown.freed.get(), std::this_thread::get_id());
}

TEST(ReleaseThreadTest, WhatIsDroppedLaterIsFreedInPlace) {
  auto thread = std::make_unique<ReleaseThread>();
  Shared first(*thread, kLarge), after_stop(*thread, kLarge), after_end(*thread, kLarge);
  first.share.reset();
  thread->stop();
  EXPECT_EQ(first.freed.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "what waits is freed";
  after_stop.share.reset();
  EXPECT_EQ(after_stop.freed.get(), std::this_thread::get_id());
  thread.reset();
  after_end.share.reset();
  EXPECT_EQ(after_end.freed.get(), std::this_thread::get_id());
}

// An object that is as large as all that may wait, and whose freeing waits for the test: the next has no room.
TEST(ReleaseThreadTest, WhatFindsNoRoomIsFreedInPlace) {
  ReleaseThread thread;
  std::promise<void> go;
  struct Held {
    ~Held() { go.wait(); }
    std::shared_future<void> go;
  };
  auto held = thread.share(std::make_unique<Held>(go.get_future().share()),
                           [](const Held&) { return ReleaseThread::kWaitingBytesMax; });
  held.reset();
  Shared next(thread, kLarge);
  next.share.reset();
  EXPECT_EQ(next.freed.get(), std::this_thread::get_id());
  go.set_value();
}

// The last share of an object may be held by another object that the thread frees.
TEST(ReleaseThreadTest, ObjectsMayHoldOthers) {
  ReleaseThread thread;
  Shared inner(thread, kLarge);
  struct Outer {
    std::shared_ptr<Object> inner;
  };
  auto outer = thread.share(std::make_unique<Outer>(std::move(inner.share)), [](const Outer&) { return kLarge; });
  outer.reset();
  EXPECT_NE(inner.freed.get(), std::this_thread::get_id());
}

}  // namespace
}  // namespace foliot
