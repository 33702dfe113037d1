// AzureLikeTrace: a synthetic workload with the properties of the traces of Azure
// Functions, for use without them: a few functions bring almost all invocations, rates
// span many decades, timers fire in step, and load follows the day.
//
// Each function has a mean rate, log-normal over functions, and a trigger that
// determines how it is invoked:
//   timer                      every 1, 5, 15 or 60 minutes on the minute, <= 1 s late
//   HTTP                       Poisson, with a daily and a weekly wave
//   queue, event               bursts: Gamma gaps with a variation of 2 to 8
//   orchestration and others   Poisson
// Functions and their rates depend on the seed of the options only; the instants on
// the random numbers of the replay.
#ifndef FOLIOT_LOAD_WORKLOAD_AZURE_LIKE_TRACE_H_
#define FOLIOT_LOAD_WORKLOAD_AZURE_LIKE_TRACE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "foundation/base/time.h"
#include "load/workload/function_trace.h"

namespace foliot {

enum class FunctionTrigger : uint8_t { kHttp, kQueue, kEvent, kTimer, kOrchestration, kOther };

struct AzureLikeOptions {
  uint32_t functions = 46'000;
  double rate = 1000;  // invocations per second, on average over days
  uint64_t seed = 1;
  // Time of the week at which the replay begins, since Monday 0:00.
  Duration from = Duration::seconds(3600) * 9;
};

class AzureLikeTrace : public FunctionTrace {
 public:
  struct Function {
    FunctionTrigger trigger;
    double rate;                          // mean, per second
    double coefficient_of_variation = 1;  // of kQueue and kEvent
    Duration period;                      // of kTimer
  };
  // REQUIRES: functions > 0, rate > 0.
  explicit AzureLikeTrace(const AzureLikeOptions& options);

  uint32_t functions() const override { return static_cast<uint32_t>(functions_.size()); }
  const Function& function(uint32_t index) const { return functions_.at(index); }
  std::unique_ptr<TraceReplay> replay(Random random) const override;

 private:
  class Replay;

  const AzureLikeOptions options_;
  std::vector<Function> functions_;
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_AZURE_LIKE_TRACE_H_
