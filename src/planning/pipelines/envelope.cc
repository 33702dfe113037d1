#include "planning/pipelines/envelope.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "foundation/base/check.h"

namespace foliot {

std::vector<Duration> envelope_windows(Duration service_time) {
  FOLIOT_CHECK(service_time > Duration());
  std::vector<Duration> windows;
  for (Duration window = service_time; window < kEnvelopeWindowMax; window = window * 2) windows.push_back(window);
  windows.push_back(kEnvelopeWindowMax);
  return windows;
}

Envelope traffic_envelope(std::span<const int64_t> arrivals_ns, const std::vector<Duration>& windows) {
  Envelope envelope{windows, {}};
  for (const Duration window : windows) {
    size_t most = 0;
    size_t first = 0;
    for (size_t last = 0; last < arrivals_ns.size(); ++last) {
      while (arrivals_ns[first] <= arrivals_ns[last] - window.nanoseconds()) ++first;
      most = std::max(most, last + 1 - first);
    }
    envelope.most.push_back(static_cast<uint32_t>(most));
  }
  return envelope;
}

SlidingWindows::SlidingWindows(std::vector<Duration> windows, size_t arrivals_most)
    : windows_(std::move(windows)), counts_(windows_.size()), arrivals_(std::bit_ceil(arrivals_most)) {}

void SlidingWindows::add(TimePoint at) {
  const size_t mask = arrivals_.size() - 1;
  arrivals_[next_++ & mask] = at;
  for (size_t i = 0; i < windows_.size(); ++i) {
    uint32_t& count = counts_[i];
    count = std::min(count + 1, static_cast<uint32_t>(arrivals_.size()));
    while (arrivals_[(next_ - count) & mask] <= at - windows_[i]) --count;
  }
}

}  // namespace foliot
