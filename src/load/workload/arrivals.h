// Arrival processes: the instants at which requests come.
//
// A process is pure and seeded: the same options and the same random numbers give
// the same arrivals, in real and in virtual time. Closed loops have no process:
// there an answer brings the next request (load/client/load_generator.h).
//
// Threading: not thread-safe; one process and one Random per owner.
#ifndef FOLIOT_LOAD_WORKLOAD_ARRIVALS_H_
#define FOLIOT_LOAD_WORKLOAD_ARRIVALS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

class ArrivalProcess {
 public:
  virtual ~ArrivalProcess() = default;
  // From the arrival before (at first: from the start) to the next one; nullopt
  // when none follows, and then for good.
  virtual std::optional<Duration> next_gap(Random& random) = 0;
};

enum class ArrivalKind : uint8_t {
  kPoisson,  // independent users
  kGamma,    // Gamma-distributed gaps: burstier (coefficient of variation > 1) or more regular (< 1) than Poisson
  kUniform,  // evenly spaced
  kOnOff,    // Poisson bursts and silence, both of exponential length (a Markov-modulated process)
  kSpike,    // Poisson whose rate rises, stays high for a while, and falls again
  kRamp,     // Poisson whose rate grows or falls steadily, then stays
  kReplay,   // given instants
};

// "poisson", "gamma", "uniform", "on-off", "spike", "ramp", "replay".
std::string_view to_string(ArrivalKind kind);
std::optional<ArrivalKind> parse_arrival_kind(std::string_view name);

struct ArrivalOptions {
  ArrivalKind kind = ArrivalKind::kPoisson;
  // Arrivals per second: the mean; of kSpike and kRamp, the rate at the start.
  double rate = 100;
  double coefficient_of_variation = 2;           // kGamma
  Duration mean_on = Duration::seconds(1);       // kOnOff; while on, the rate is
  Duration mean_off = Duration::seconds(1);      //   rate * (mean_on + mean_off) / mean_on
  Duration spike_start = Duration::seconds(5);   // kSpike; the rate begins to rise
  Duration spike_rise = Duration::seconds(1);    //   for so long, and falls as fast
  Duration spike_length = Duration::seconds(1);  //   and stays at the top for so long
  double spike_factor = 3;                       //   where it is rate * spike_factor
  double ramp_rate = 1000;                       // kRamp; the rate at the end
  Duration ramp_length = Duration::seconds(10);  //   of so long
  std::vector<Duration> instants{};              // kReplay; since the start, ascending
};

// Errors: kInvalidArgument naming the option.
Result<std::unique_ptr<ArrivalProcess>> make_arrivals(const ArrivalOptions& options);

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_ARRIVALS_H_
