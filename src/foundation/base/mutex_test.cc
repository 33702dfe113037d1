#include "foundation/base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace foliot {
namespace {

// Whether another thread could take `mutex` now.
bool is_free(Mutex& mutex) {
  bool taken = false;
  std::thread([&] {
    if (!mutex.try_lock()) return;
    mutex.unlock();
    taken = true;
  }).join();
  return taken;
}

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  int wait_until(int count) {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() REQUIRES(mutex_) { return count_ >= count; });
    return count_;
  }
  int wait_in_a_loop(int count) {
    const MutexLock lock(mutex_);
    while (count_ < count) changed_.wait(mutex_);
    return count_;
  }
  bool wait_for(int count, Duration duration) {
    const MutexLock lock(mutex_);
    return changed_.wait_for(mutex_, duration, [&]() REQUIRES(mutex_) { return count_ >= count; });
  }
  bool is_free_after_wait() {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, Duration());
    const bool was_held = !is_free(mutex_);
    lock.unlock();
    return was_held && is_free(mutex_);
  }

 private:
  Mutex mutex_;
  Condition changed_;
  int count_ GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, LetsOneThreadAtATimeChangeWhatItGuards) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) counter.add();
    });
  }
  EXPECT_EQ(counter.wait_until(4000), 4000);
  for (std::thread& thread : threads) thread.join();
}

TEST(MutexLock, HoldsUntilItGoes) {
  Mutex mutex;
  {
    const MutexLock lock(mutex);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexLock, IsUnlockedAndLockedAgain) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.unlock();
    EXPECT_TRUE(is_free(mutex));
    lock.lock();
    EXPECT_FALSE(is_free(mutex));
    lock.unlock();
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexLock, TakesOverWhatIsHeld) {
  Mutex mutex;
  if (!mutex.try_lock()) FAIL();
  {
    const MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(SharedMutex, HasReadersTogetherAndOneWriterAlone) {
  struct {
    SharedMutex mutex;
    int value GUARDED_BY(mutex) = 0;
  } shared;
  {
    const MutexLock lock(shared.mutex);
    shared.value = 1;
  }
  const ReaderLock lock(shared.mutex);
  int seen = 0;
  std::thread([&] {
    const ReaderLock another(shared.mutex);  // would wait for ever if readers were alone
    seen = shared.value;
  }).join();
  EXPECT_EQ(seen, 1);
}

TEST(Condition, IsWaitedForInALoop) {
  Counter counter;
  std::thread thread([&] { counter.add(); });
  EXPECT_EQ(counter.wait_in_a_loop(1), 1);
  thread.join();
}

TEST(Condition, HoldsTheMutexAgainAfterAWait) { EXPECT_TRUE(Counter().is_free_after_wait()); }

TEST(Condition, ReturnsWhetherItCameInTime) {
  Counter counter;
  EXPECT_FALSE(counter.wait_for(1, Duration()));
  std::thread thread([&] { counter.add(); });
  EXPECT_TRUE(counter.wait_for(1, Duration::max()));  // an instant that no clock has
  thread.join();
}

}  // namespace
}  // namespace foliot
