// ReplanTuner: the fewest replicas by which the estimator meets the goal on the arrivals of the
// last minute, and of the last seconds. Kinds and batch sizes stay those of the plan, and so do
// the shares of the queries that visit each stage.
//
// With a saved plan it keeps the plan's replicas while arrivals are as planned (arrival_watch.h): a minute of them says
// less than the trace that the plan was made for. When surely more come, it rises at once, as they come; the search
// begins from there.
//
// Its time is bounded by work, not by a clock: once `replayed_most` visits are replayed, the step
// of the search under way is its last. Each step leaves fewer queries late, or takes replicas that
// are not needed, so that the search goes on from there at the next look.
//
// Threading: one owner. Time is an argument.
#ifndef FOLIOT_PLANNING_PIPELINES_REPLAN_TUNER_H_
#define FOLIOT_PLANNING_PIPELINES_REPLAN_TUNER_H_

#include <optional>
#include <span>
#include <vector>

#include "foundation/base/random.h"
#include "planning/pipelines/arrival_watch.h"
#include "planning/pipelines/estimator.h"
#include "planning/pipelines/tuner.h"

namespace foliot {

struct ReplanOptions {
  Duration interval = Duration::seconds(1);     // between two looks
  Duration window = Duration::seconds(60);      // of arrivals that the estimator replays
  Duration recent = Duration::seconds(5);       // these, by themselves, are to meet the goal, too
  Duration stable_for = Duration::seconds(15);  // without a change, before replicas go
  uint32_t replicas_most = 4096;                // of a stage
  uint32_t arrivals_most = 1 << 18;             // that are kept; the oldest go first
  uint64_t replayed_most = uint64_t{1} << 40;   // queries times stages, of all estimates of one look
  // Looks at tick() only, and not when a query arrives; what is stable is counted from the first tick() on; and a stage
  // has at least the replicas that its share of the rate of the last seconds needs in full batches, from which the
  // search begins.
  bool in_service = false;

  // Of one pipeline in a server: a look takes some tenths of a second at most.
  static ReplanOptions of_server() {
    return {.arrivals_most = 1 << 16, .replayed_most = uint64_t{1} << 24, .in_service = true};
  }
};

class ReplanTuner final : public ReplicaTuner {
 public:
  ReplanTuner(PlannedPipeline pipeline, const Configuration& planned, LatencyGoal goal,
              const ReplanOptions& options = {});

  // Of a saved plan, whose replicas it keeps while arrivals are as planned, and to whose envelope it compares them as
  // they come. REQUIRES: the plan can estimate.
  ReplanTuner(const TuningPlan& plan, std::span<const StageEdges> edges, const ReplanOptions& options);

  bool arrive(TimePoint now) override;
  bool tick(TimePoint now) override;
  const std::vector<uint32_t>& replicas() const override { return replicas_; }

  // As options.replayed_most, from the next look on.
  void set_replayed_most(uint64_t replayed) { replayed_most_ = replayed; }
  // By the last look.
  uint64_t replayed() const { return replayed_; }

 private:
  bool replan(TimePoint now);
  bool rise_to(const ArrivalWatch::Surge& surge, TimePoint now);
  bool go_to_plan(TimePoint now);
  // Those of the last window alone.
  void forget_arrivals(TimePoint now);
  bool feasible(Estimator& estimator, const Configuration& configuration);
  uint64_t missed(Estimator& estimator, const Configuration& configuration);
  bool exhausted() const { return replayed_ >= replayed_most_; }
  void count(const Estimator& estimator) { replayed_ += estimator.trace().size() * pipeline_.stages.size(); }
  uint32_t least_replicas(size_t stage, double rate) const;
  void add_replicas(Estimator& estimator);
  bool remove_replicas(Estimator& last_window, Estimator& last_moment, double rate);

  const PlannedPipeline pipeline_;
  const LatencyGoal goal_;
  const ReplanOptions options_;
  uint64_t replayed_most_;
  uint64_t replayed_ = 0;
  Random random_{18};
  QueryTrace arrivals_;
  Configuration configuration_;
  std::vector<uint32_t> replicas_;
  TimePoint replanned_;
  TimePoint changed_;
  bool began_ = false;  // tick() was called
  TimePoint begin_;
  std::optional<ArrivalWatch> watch_;  // nullopt: the plan's arrivals are not known
  std::vector<uint32_t> planned_replicas_;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_REPLAN_TUNER_H_
