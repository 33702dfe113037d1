// ReleaseThread: frees large objects on a thread of its own. To give tens of MiB back to the kernel takes
// milliseconds, in which the thread that has dropped them would answer no other client.
//
// The thread is started when there is something for it. At most kWaitingBytesMax wait for it: what comes on top is
// freed by the thread that drops it, and so is everything after stop().
//
// Threading: share() and what is done with the objects on any thread; stop() and the destructor by the owner. The
// objects may outlive it. It allocates and locks where an object is large: not on the path of an EXEC.
#ifndef FOLIOT_FOUNDATION_PLATFORM_RELEASE_THREAD_H_
#define FOLIOT_FOUNDATION_PLATFORM_RELEASE_THREAD_H_

#include <cstdint>
#include <memory>
#include <utility>

namespace foliot {

class ReleaseThread {
 public:
  // Freed within a fraction of a millisecond, and so by the thread that drops it.
  static constexpr uint64_t kSmallBytes = 256 << 10;
  static constexpr uint64_t kWaitingBytesMax = 256 << 20;

  ReleaseThread();
  ~ReleaseThread() { stop(); }
  ReleaseThread(const ReleaseThread&) = delete;
  ReleaseThread& operator=(const ReleaseThread&) = delete;

  // A share in `object`, which is freed on the thread if `bytes_of(*object)` is large when the last share is dropped.
  // `bytes_of` returns what the object's memory takes, and must not throw.
  template <typename T, typename BytesOf>
  std::shared_ptr<T> share(std::unique_ptr<T> object, BytesOf bytes_of) {
    return {object.release(), [queue = queue_, bytes_of](T* last) {
              const uint64_t bytes = bytes_of(*last);
              std::unique_ptr<T> dropped(last);
              if (bytes > kSmallBytes) release(*queue, std::move(dropped), bytes);
            }};
  }

  // Frees what waits, and joins the thread. Calling this again does nothing.
  void stop();

 private:
  class Queue;
  static void release(Queue& queue, std::shared_ptr<const void> last, uint64_t bytes);

  const std::shared_ptr<Queue> queue_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_RELEASE_THREAD_H_
