#include "cluster/transport/clock_offset.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {

void ClockOffset::add(TimePoint sent, TimePoint server_time, TimePoint received) {
  FOLIOT_CHECK(received >= sent);
  const Duration round_trip = received - sent;
  last_[samples_++ % kWindow] = {server_time - (sent + round_trip / 2), round_trip};
  const auto end = last_.begin() + std::min(samples_, kWindow);
  best_ = *std::min_element(last_.begin(), end,
                            [](const Sample& a, const Sample& b) { return a.round_trip < b.round_trip; });
}

}  // namespace foliot
