// HeldWakes: what its thread posts to an event loop does not wake the loop until release(), which wakes it once. For a
// thread that handles events in bursts: each wake-up costs a system call, and a turn of the loop. Of several loops that
// is the one that is posted to first; the others are woken at once.
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

 protected:
  ~Sleeper() = default;
};

class HeldWakes {
 public:
  // Its thread should release after so many events, though more may be at hand: what was posted first waits for all.
  static constexpr int kEventsMax = 16;

  HeldWakes();
  ~HeldWakes();  // releases
  HeldWakes(const HeldWakes&) = delete;
  HeldWakes& operator=(const HeldWakes&) = delete;

  // REQUIRES: it is called before its thread waits for anything.
  void release();

  // Wakes at once, unless the calling thread holds its wake-ups.
  static void wake(Sleeper& sleeper);

 private:
  // One: a thread that serves clients posts to one loop.
  Sleeper* held_ = nullptr;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_HELD_WAKES_H_
