// Coarse-grained baseline (InferLine, section 4.6): the whole pipeline is one black box. A unit
// is one replica of each stage on its fastest kind, all with the largest batch size that meets
// the SLO; units are added and removed as a whole.
#ifndef FOLIOT_PLANNING_PIPELINES_COARSE_GRAINED_H_
#define FOLIOT_PLANNING_PIPELINES_COARSE_GRAINED_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "planning/pipelines/configuration.h"
#include "planning/pipelines/tuner.h"

namespace foliot {

enum class CoarseGrainedRate : uint8_t {
  kMean,  // CG-Mean: the mean rate of the trace
  kPeak,  // CG-Peak: the highest rate in a window as long as the SLO
};

// What a unit can take. The thesis leaves it open: what a black box takes depends on how it is
// measured.
enum class CoarseGrainedUnit : uint8_t {
  kPipelined,  // stages work on several batches: as much as the slowest stage
  kOneBatch,   // a batch enters when the one before is over: a batch in the time of the longest path
};

struct CoarseGrainedPlan {
  Configuration configuration;
  double unit_throughput = 0;  // queries per second
};

// Errors: kInvalidArgument: an empty trace, or an SLO below the service time.
Result<CoarseGrainedPlan> plan_coarse_grained(const PlannedPipeline& pipeline, const QueryTrace& trace, Duration slo,
                                              CoarseGrainedRate rate,
                                              CoarseGrainedUnit unit = CoarseGrainedUnit::kPipelined);

// AutoScale's tuning of units: every second, as many as the rate of the last second needs; a
// unit goes once it was not needed for `wait`.
//
// Threading: one owner. Time is an argument.
class CoarseGrainedTuner final : public ReplicaTuner {
 public:
  explicit CoarseGrainedTuner(const CoarseGrainedPlan& plan, Duration wait = Duration::seconds(120));

  bool arrive(TimePoint now) override;
  bool tick(TimePoint now) override;
  const std::vector<uint32_t>& replicas() const override { return replicas_; }

 private:
  const double unit_throughput_;
  const Duration wait_;
  std::vector<uint32_t> replicas_;
  uint64_t arrivals_ = 0;  // since the last tick
  TimePoint ticked_;
  std::deque<std::pair<TimePoint, uint32_t>> needed_;  // of the last `wait`, falling
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_COARSE_GRAINED_H_
