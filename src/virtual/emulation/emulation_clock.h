// EmulationClock: the alarms of emulated executors, in order of time.
//
// Executors are punctual even where the process is not: whatever is due happens at
// its own instant, however late the process gets to it. An EXEC of 10 ms ends 10 ms
// after it began and the next one begins right then; only the report is late, as
// over a slower link. So one thread that is busy with 150 workers does not make any
// of them a slower device.
//
// Threading: belongs to one thread.
#ifndef FOLIOT_VIRTUAL_EMULATION_EMULATION_CLOCK_H_
#define FOLIOT_VIRTUAL_EMULATION_EMULATION_CLOCK_H_

#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

class EmulationClock {
 public:
  class Alarm {
   public:
    virtual ~Alarm() = default;
    virtual void ring(uint64_t ticket) = 0;
  };

  // The instant that is being emulated; never goes back.
  TimePoint now() const { return now_; }
  // `alarm` outlives the ring. An instant that has passed means now.
  void at(TimePoint when, Alarm& alarm, uint64_t ticket);
  // Lets everything happen that is due by `now`; now() is then `now`.
  void advance(TimePoint now);
  // When the next alarm is due; infinite if there is none.
  TimePoint next() const { return entries_.empty() ? TimePoint::infinite_future() : entries_.top().when; }

 private:
  struct Entry {
    TimePoint when;
    uint64_t sequence;
    Alarm* alarm;
    uint64_t ticket;
    bool operator>(const Entry& other) const { return std::tie(when, sequence) > std::tie(other.when, other.sequence); }
  };

  TimePoint now_;
  uint64_t next_sequence_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EMULATION_EMULATION_CLOCK_H_
