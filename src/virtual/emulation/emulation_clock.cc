#include "virtual/emulation/emulation_clock.h"

#include <algorithm>

namespace foliot {

void EmulationClock::at(TimePoint when, Alarm& alarm, uint64_t ticket) {
  entries_.push({std::max(when, now_), next_sequence_++, &alarm, ticket});
}

void EmulationClock::advance(TimePoint now) {
  while (!entries_.empty() && entries_.top().when <= now) {
    const Entry entry = entries_.top();
    entries_.pop();
    now_ = entry.when;
    entry.alarm->ring(entry.ticket);
  }
  now_ = std::max(now_, now);
}

}  // namespace foliot
