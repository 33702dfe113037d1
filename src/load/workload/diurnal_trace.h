// A trace of arrivals whose rate follows a day, shortened to minutes, with spikes: between a
// least and a largest rate, with an exact number of arrivals. In place of the Twitter trace
// that INFaaS was measured with.
#ifndef FOLIOT_LOAD_WORKLOAD_DIURNAL_TRACE_H_
#define FOLIOT_LOAD_WORKLOAD_DIURNAL_TRACE_H_

#include <cstdint>
#include <vector>

#include "foundation/base/time.h"

namespace foliot {

struct DiurnalOptions {
  uint32_t arrivals = 113'420;
  double rate_least = 10;   // per second, at night
  double rate_most = 1000;  // in the highest spike
  double rate_day = 600;    // at noon, without spikes
  uint32_t spikes = 5;      // each of 2 to 3 % of the length
  uint64_t seed = 1;        // when the spikes are, how high they are, and the arrivals
};

// Since the beginning, ascending. The length follows from the rates and the number.
// REQUIRES: arrivals > 0, 0 < rate_least <= rate_day <= rate_most.
std::vector<Duration> diurnal_trace(const DiurnalOptions& options);

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_DIURNAL_TRACE_H_
