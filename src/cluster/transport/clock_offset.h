// ClockOffset: the difference between a server's clock and one's own, from pings that
// the server answers with its time. The answer was written somewhere between the ping
// and its return; the middle is the best estimate, and half of the round trip bounds
// the error. Of the last few pings the fastest counts.
//
// Threading: belongs to one thread.
#ifndef FOLIOT_CLUSTER_TRANSPORT_CLOCK_OFFSET_H_
#define FOLIOT_CLUSTER_TRANSPORT_CLOCK_OFFSET_H_

#include <array>
#include <cstdint>

#include "foundation/base/time.h"

namespace foliot {

class ClockOffset {
 public:
  static constexpr uint32_t kWindow = 8;

  // A ping left at `sent` and came back at `received`, on one's own clock; the server
  // answered it at `server_time` on its own. REQUIRES: received >= sent.
  void add(TimePoint sent, TimePoint server_time, TimePoint received);

  uint32_t samples() const { return samples_; }
  // The server's time minus one's own; zero before the first ping.
  Duration offset() const { return best_.offset; }
  // The true offset is within this of offset().
  Duration error() const { return best_.round_trip / 2; }

  TimePoint to_host(TimePoint own) const { return own + best_.offset; }
  TimePoint to_own(TimePoint host) const { return host - best_.offset; }

 private:
  struct Sample {
    Duration offset;
    Duration round_trip;
  };
  std::array<Sample, kWindow> last_{};
  uint32_t samples_ = 0;
  Sample best_{};
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_TRANSPORT_CLOCK_OFFSET_H_
