#include "foundation/platform/release_thread.h"

#include <deque>

#include "foundation/base/mutex.h"
#include "foundation/platform/thread.h"

namespace foliot {

// Objects share it, so that those which outlive the thread find it stopped.
class ReleaseThread::Queue {
 public:
  // Takes `last` unless it has to be freed by the caller.
  void add(std::shared_ptr<const void>& last, uint64_t bytes) {
    const MutexLock lock(mutex_);
    if (stopping_ || bytes > kWaitingBytesMax - waiting_bytes_ || !has_thread()) return;
    waiting_bytes_ += bytes;
    waiting_.push_back({std::move(last), bytes});
    changed_.notify_one();
  }

  void stop() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }

 private:
  struct Waiting {
    std::shared_ptr<const void> object;
    uint64_t bytes = 0;
  };

  bool has_thread() REQUIRES(mutex_) {
    if (is_running_) return true;
    Result<Thread> started = Thread::start({.name = "foliot-release"}, [this] { run(); });
    if (!started.ok()) return false;
    thread_ = std::move(started).value();
    return is_running_ = true;
  }

  void run() {
    use_default_slices();
    MutexLock lock(mutex_);
    while (true) {
      changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Waiting first = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      first.object.reset();
      lock.lock();
      waiting_bytes_ -= first.bytes;
    }
  }

  Mutex mutex_;
  Condition changed_;
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  uint64_t waiting_bytes_ GUARDED_BY(mutex_) = 0;  // with what is being freed
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool is_running_ GUARDED_BY(mutex_) = false;
  Thread thread_;  // set once, with the lock; joined after it has ended
};

ReleaseThread::ReleaseThread() : queue_(std::make_shared<Queue>()) {}

void ReleaseThread::stop() { queue_->stop(); }

void ReleaseThread::release(Queue& queue, std::shared_ptr<const void> last, uint64_t bytes) { queue.add(last, bytes); }

}  // namespace foliot
