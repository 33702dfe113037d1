// VirtualLoop: time that passes as fast as events can be handled. Events at one
// instant run in the order in which they were scheduled, so a run depends on
// nothing but its inputs.
#ifndef FOLIOT_SIM_VIRTUAL_LOOP_H_
#define FOLIOT_SIM_VIRTUAL_LOOP_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/time.h"

namespace foliot {

class VirtualLoop {
 public:
  TimePoint now() const { return now_; }

  // REQUIRES: when >= now().
  void at(TimePoint when, std::function<void()> event) {
    FOLIOT_CHECK(when >= now_);
    events_.push({when, next_sequence_++, std::move(event)});
  }

  // Runs events up to and including `end`; returns how many. now() is then `end`,
  // or, if `end` is infinite, the time of the last event.
  uint64_t run_until(TimePoint end) {
    uint64_t handled = 0;
    while (!events_.empty() && events_.top().when <= end) {
      auto event = std::move(const_cast<Event&>(events_.top()).event);  // popped next; top() is const only
      now_ = events_.top().when;
      events_.pop();
      event();
      ++handled;
    }
    if (!end.is_infinite()) now_ = end;
    return handled;
  }

 private:
  struct Event {
    TimePoint when;
    uint64_t sequence;
    std::function<void()> event;
    bool operator>(const Event& other) const {
      return std::pair(when, sequence) > std::pair(other.when, other.sequence);
    }
  };

  TimePoint now_;
  uint64_t next_sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace foliot

#endif  // FOLIOT_SIM_VIRTUAL_LOOP_H_
