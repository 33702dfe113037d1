// Traffic envelope of arrivals (InferLine, section 4.5): of each of several window lengths, the
// most queries that came within any window of that length.
//
// Windows begin with the service time of the pipeline and double up to 60 s.
#ifndef FOLIOT_PLANNING_PIPELINES_ENVELOPE_H_
#define FOLIOT_PLANNING_PIPELINES_ENVELOPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

inline constexpr Duration kEnvelopeWindowMax = Duration::seconds(60);

struct Envelope {
  std::vector<Duration> windows;  // ascending
  std::vector<uint32_t> most;     // by windows

  bool operator==(const Envelope&) const = default;
};

// REQUIRES: service_time > 0.
std::vector<Duration> envelope_windows(Duration service_time);

// A window of length L holds the arrivals in (t - L, t]. REQUIRES: ascending arrivals.
Envelope traffic_envelope(std::span<const int64_t> arrivals_ns, const std::vector<Duration>& windows);

// Counts the arrivals of the last moments in each window at once.
//
// Threading: one owner.
class SlidingWindows {
 public:
  // Counts no window beyond the last `arrivals_most` arrivals.
  explicit SlidingWindows(std::vector<Duration> windows, size_t arrivals_most = size_t{1} << 20);

  // REQUIRES: `at` never falls.
  void add(TimePoint at);
  // Arrivals in (now - window, now] as of the last arrival, by windows.
  const std::vector<uint32_t>& counts() const { return counts_; }
  const std::vector<Duration>& windows() const { return windows_; }

 private:
  const std::vector<Duration> windows_;
  std::vector<uint32_t> counts_;
  std::vector<TimePoint> arrivals_;  // a ring
  uint64_t next_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_ENVELOPE_H_
