// Baton: lets one of several threads at a time do what there is to do in one place. A thread that finds the baton
// taken leaves its work to the holder, which looks for it before it puts the baton down.
//
// What a thread wrote before a take() that failed is seen by the holder after the put_down() that fails for it. What
// a holder wrote is seen by the next one.
//
// Threading: any. Nothing waits, and there is neither a lock nor a system call.
#ifndef FOLIOT_FOUNDATION_PLATFORM_BATON_H_
#define FOLIOT_FOUNDATION_PLATFORM_BATON_H_

#include <atomic>
#include <cstdint>

namespace foliot {

class Baton {
 public:
  // Returns whether the caller holds the baton from here on. If not, put_down() of its holder fails.
  bool take() {
    if (tries_.fetch_add(1, std::memory_order_acq_rel) != 0) return false;
    seen_ = 1;
    return true;
  }
  // False: other threads have tried to take it, so the holder keeps it and has to look again. REQUIRES: the caller
  // holds it.
  bool put_down() { return tries_.compare_exchange_strong(seen_, 0, std::memory_order_acq_rel); }
  // Puts it down whatever others have tried: the caller sees to it that what they left is looked for. REQUIRES: the
  // caller holds it.
  void drop() { tries_.store(0, std::memory_order_release); }

 private:
  std::atomic<uint64_t> tries_{0};  // to take it, since it was last put down; 0: it is free
  uint64_t seen_ = 0;               // the holder's: of these, those before it looked last
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_BATON_H_
