// HeldWakes: what its thread posts to an event loop does not wake the loop until release() or wake_held(), which wake
// it once. For a thread that handles events in bursts: each wake-up costs a system call, and a turn of the loop. Of
// several loops that is the one that is posted to first; the others are woken at once.
//
// A thread that has nothing else to do calls release(): a loop that is idle and allows it has its turn on that thread
// then, which spares the wake-up and the way back.
//
// Threading: of one thread, that makes it and destroys it; one at a time on a thread. What was posted to outlives the
// next release().
#ifndef FOLIOT_FOUNDATION_BASE_HELD_WAKES_H_
#define FOLIOT_FOUNDATION_BASE_HELD_WAKES_H_

namespace foliot {

// What sleeps until something is posted to it.
class Sleeper {
 public:
  // Any thread.
  virtual void wake() = 0;
  // Likewise. What the caller woke it for is done by the caller, as far as the sleeper allows that.
  virtual void wake_or_serve() { wake(); }

 protected:
  ~Sleeper() = default;
};

class HeldWakes {
 public:
  // Its thread should release after so many events, though more may be at hand: what was posted first waits for all.
  static constexpr int kEventsMax = 16;

  HeldWakes();
  ~HeldWakes();  // wakes
  HeldWakes(const HeldWakes&) = delete;
  HeldWakes& operator=(const HeldWakes&) = delete;

  // REQUIRES: one of these is called before its thread waits for anything. That of release() holds no lock. What is
  // posted while a sleeper is served is released, too, up to a bound.
  void release();
  void wake_held();

  // Wakes at once, unless the calling thread holds its wake-ups.
  static void wake(Sleeper& sleeper);
  // As wake_held(), for a caller that does not know whether its thread holds any.
  static void wake_held_of_this_thread();

 private:
  // One: a thread that serves clients posts to one loop.
  Sleeper* held_ = nullptr;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_HELD_WAKES_H_
