// PipelineRuns: follows each run of a pipeline through its stages (InferLine, section 4.1;
// foundation/core/pipeline_info.h says what is visited when). Each visit is a Request like any other, of
// which policies need not know that it belongs to a run.
//
// A visit's reserve is what follows takes on the longest path: EXEC, as expected, and the wait
// before it, as lately measured. So a stage may use all the slack of its run but for what later
// stages will need. A stage that is visited under conditions counts while at least half of the
// runs visit it.
//
// A run is refused when it comes if idle devices could not meet its path (kUnmeetable), or if
// it has no time for what waits (kOverload): the wait at its stages, and what the more urgent
// runs under way still need: EXEC of their stages in the batches that take least time for a row,
// times what experience says. That factor grows when a run is refused after some of its stages
// were computed for nothing, and shrinks as runs are answered, so that about one run in a
// hundred and sixty is. Being let in only with time to wait, runs fill batches.
//
// A stage that not all runs visit is left out of that where it takes so much that its runs are better
// dropped when they come to it, than others on arrival: those that skip it are answered for
// little. Of devices they get what runs that come leave: what they have to wait for counts more,
// the more of those are refused. With a share p of the runs, a cost c, and costs b of the stages before and beside it,
// that is so if (1 - p) c > b: more runs are answered if none visits it. Such a visit is let in, or its run refused,
// when its condition is known.
//
// A stage that is visited for each element of an output counts in reserves as a batch of as many rows
// as runs lately had elements, rounded up, and in the work ahead with their mean number. Counting the
// most that there may be would refuse most of what can be answered. Once a run's elements are counted,
// its work ahead is theirs. A count that is no whole number up to the stage's limit refuses the run
// (kModelError). What the counts were is forgotten while none come, so that no run is refused forever
// for what others had.
//
// Where workers hold what stages compute (hold_outputs()), a run reserves room for all of it when it
// begins, on each worker, since any of them may visit any stage; it is refused (kOverload) if there is
// none. Outputs are discarded when no stage can take them any more. With a holder that is lost, the
// runs that still need what it held are refused (kWorkerLost).
//
// When a visit is refused, the run's visits that wait are cancelled, and the run is refused for the
// same reason, which names the stage, once none of its visits is with a worker: until then
// their payloads are in use.
//
// Threading: not thread-safe; belongs to the controller.
#ifndef FOLIOT_CONTROL_CONTROLLER_PIPELINE_RUNS_H_
#define FOLIOT_CONTROL_CONTROLLER_PIPELINE_RUNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/controller/cluster.h"
#include "control/controller/work_ahead.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/pipeline_info.h"
#include "foundation/core/request.h"
#include "foundation/core/stage_slots.h"
#include "foundation/core/visit_order.h"

namespace foliot {

// How the stages of a run share its time.
enum class PipelineSlack : uint8_t {
  kShared,  // as above
  // What Foliot is compared with; runs are not refused as kOverload when they come:
  kSplit,   // each stage has its part of the run's time, in proportion to its least time
  kByPath,  // reserves as above: visits are dropped early, by the rest of the path (as the abstract
            // of PARD has it, arXiv 2602.08747)
};
std::string_view to_string(PipelineSlack slack);  // "shared", "split", "by_path"
std::optional<PipelineSlack> parse_pipeline_slack(std::string_view name);

class PipelineRuns {
 public:
  // What runs are made of and end in.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Exactly one visit_over() follows, perhaps before this returns.
    virtual void submit_visit(const Request& visit, TimePoint now) = 0;
    // If it waits, it is over with this refusal before this returns.
    virtual void cancel_visit(RequestId visit, Refusal reason, TimePoint now) = 0;
    virtual void run_over(const Completion& completion, TimePoint now) = 0;
  };

  // Both outlive this.
  PipelineRuns(const Cluster& cluster, Owner& owner, PipelineSlack slack = PipelineSlack::kShared)
      : cluster_(cluster), owner_(owner), slack_(slack) {}

  // As PipelineSink.
  void add(std::shared_ptr<const PipelineInfo> pipeline);
  void remove(PipelineId pipeline);
  // Refuses the runs that are not over of all pipelines with this model (kUnloaded).
  void remove_model(ModelId model, TimePoint now);

  // Before the first run: what stages compute is held where it was computed. Outlives this.
  void hold_outputs(VisitOutputs& outputs) { held_outputs_ = &outputs; }
  // Of each worker.
  void set_room(const HeldRoom& room) { room_ = room; }
  // For the worker that is to make this visit. REQUIRES: is_visit().
  VisitOrder order(RequestId visit) const;
  // What it held is gone.
  void on_device_lost(DeviceId device, TimePoint now);

  // nullptr: there is no such pipeline.
  const PipelineInfo* info(PipelineId pipeline) const;

  // Exactly one run_over() follows, perhaps before this returns. REQUIRES: `run` names a
  // pipeline; run.id and run.payload have room for stages (foundation/core/stage_visit.h), and no run
  // that is not over has this id.
  void begin(const Request& run, TimePoint now);
  // Unless it is over.
  void cancel(RequestId run, Refusal reason, TimePoint now);
  // Whether it is a visit of a run, whose completion belongs to visit_over().
  bool is_visit(RequestId request) const;
  // Takes note: nothing follows before advance().
  void visit_over(const Completion& completion) { over_.push_back(completion); }
  // Goes on with the runs of which visits are over. Returns whether any were.
  bool advance(TimePoint now) {
    if (over_.empty()) return false;
    take_over(now);
    return true;
  }

  // Runs that are not over.
  size_t size() const { return runs_.size(); }

 private:
  // How long visits of a stage lately waited until EXEC began.
  class Wait {
   public:
    void record(Duration measured, TimePoint now);
    Duration lately(TimePoint now) const;

   private:
    Duration mean_;
    TimePoint seen_;
  };
  // How many elements runs lately had for a stage.
  class Elements {
   public:
    void record(uint32_t count, TimePoint now);
    double lately(TimePoint now) const;

   private:
    double mean_ = 1;
    uint32_t recorded_ = 0;
    TimePoint seen_;
  };
  struct Pipeline {
    std::shared_ptr<const PipelineInfo> info;
    StageSlots slots;
    // By stage: the stages that depend on it, by inputs or conditions.
    std::vector<std::vector<uint32_t>> successors;
    std::vector<Wait> waits;         // by stage
    std::vector<double> shares;      // by stage: of the last runs, those that visited it
    std::vector<Elements> elements;  // by stage; 1 where it is visited once
    // By stage, for runs of this bucket at `measured`: the least time of what follows, and that
    // with the stage itself.
    std::vector<Duration> rests;
    std::vector<Duration> paths;
    std::vector<Duration> rest_waits;  // likewise: what runs lately waited there
    std::vector<Duration> path_waits;
    Duration whole;  // the longest path
    Duration whole_wait;
    std::vector<StageSet> before;                // by stage: those that it depends on, directly or not
    double late_inflation = 1;                   // of what a visit that is decided late has to wait for
    std::vector<bool> decided_late;              // by stage: its visits are let in when they come
    std::vector<Duration> costs;                 // by stage: time of a device that a run takes, on average
    std::vector<Duration> row_costs;             // by stage: the same of one visit
    std::vector<KindId> kinds;                   // by stage: of devices that run it
    std::vector<StageSet> takers;                // by stage: those that may take its outputs
    std::vector<std::vector<uint32_t>> answers;  // by stage: its outputs that clients may get
    TimePoint measured;
    BucketId bucket;
  };
  struct Run {
    Request request;
    std::shared_ptr<Pipeline> pipeline;
    StageSet visited;                        // all of its visits, if any, are over
    StageSet skipped;                        // for good
    StageSet under_way;                      // some of its visits are not over
    SlotSet visits;                          // submitted, and not over
    std::array<uint8_t, kStagesMax> left{};  // by stage: of its visits, those that are not over
    std::array<ConditionSet, kStagesMax> conditions{};
    std::array<uint8_t, kStagesMax> counts{};  // by stage that counts: the elements
    std::array<Duration, kStagesMax> costs{};  // of stages that are to be visited yet, in ahead_
    SlotSet held;                              // visits that were made: their outputs are with their holders
    std::vector<DeviceId> holders{};           // by slot
    HeldRoom room{0, 0};                       // that it has reserved
    Completion completion;                     // so far; with a refusal: the run is to end
  };
  enum class Step : uint8_t { kVisit, kSkip, kWait };

  std::shared_ptr<Pipeline> find(PipelineId pipeline) const;
  void measure(Pipeline& pipeline, const Request& run, TimePoint now) const;
  // The least time of so many visits.
  Duration least_time(const PipelineStage& stage, const Request& run, uint32_t visits) const;
  // Of a stage in the runs that are to come: as many as runs lately had.
  static uint32_t expected_visits(const Pipeline& pipeline, uint32_t stage, TimePoint now);
  // What a row takes of a device, in batches that take least for it.
  Duration least_cost(const PipelineStage& stage, const Request& run, DeviceId device) const;
  bool is_decided_late(const Pipeline& pipeline, uint32_t stage) const;
  // How long devices of this kind are busy with the more urgent runs.
  Duration wait_for(KindId kind, const Request& run) const;
  // When the run could be over after those before it.
  TimePoint earliest_end(const Pipeline& pipeline, const Request& run, TimePoint now) const;
  // The same of so many visits of one stage and what follows.
  TimePoint earliest_end_after(const Pipeline& pipeline, uint32_t stage, uint32_t visits, const Request& run,
                               TimePoint now) const;
  // Of all stages but those that are decided late.
  void add_work(Run& run);
  void add_work(Run& run, uint32_t stage, Duration work);
  void remove_work(Run& run, uint32_t stage) { remove_work(run, stage, run.costs[stage]); }
  void remove_work(Run& run, uint32_t stage, Duration work);
  static bool has_bucket(const Pipeline& pipeline, BucketId bucket);
  // Of all that the run's stages may compute. REQUIRES: has_bucket().
  static HeldRoom room_of(const Pipeline& pipeline, BucketId bucket);
  bool reserve_room(Run& run);
  void discard(const Run& run, uint32_t slot);
  // What no stage can take any more.
  void discard_used(Run& run);
  void take_over(TimePoint now);
  void take(const Completion& visit, TimePoint now);
  void take_served(Run& run, uint32_t slot, const Completion& visit, TimePoint now);
  // What the stage counted; the run is refused if it cannot be that.
  void take_count(Run& run, uint32_t stage, float count, TimePoint now);
  // Visits what can be, and ends the run where nothing is left.
  void go_on(RequestId run, TimePoint now);
  Step next_step(const Run& run, uint32_t stage) const;
  // Of a stage that can be visited; false: the run is refused.
  bool visit_stage(Run& run, uint32_t stage, TimePoint now);
  // Of a stage that is decided late: whether there is time for so many visits; else the run is refused.
  bool let_in(Run& run, uint32_t stage, uint32_t visits, TimePoint now);
  void submit_visits(Run& run, uint32_t stage, uint32_t visits, TimePoint now);
  VisitOrder::Input input_order(const Run& run, const StageSlots::Place& visit,
                                const std::vector<TensorSource>& sources) const;
  // What of a run's time a stage leaves to what follows.
  Duration reserve(const Pipeline& pipeline, uint32_t stage, const Request& run) const;
  void refuse(Run& run, Refusal reason, const std::string& detail, TimePoint earliest);
  void cancel_visits(RequestId run, Refusal reason, TimePoint now);
  void end(RequestId run, TimePoint now);
  std::unique_ptr<Run> take_spare();

  const Cluster& cluster_;
  Owner& owner_;
  const PipelineSlack slack_;
  VisitOutputs* held_outputs_ = nullptr;  // null: they stay with the call
  HeldRoom room_;
  HeldRoom reserved_{0, 0};
  std::vector<std::shared_ptr<Pipeline>> pipelines_;
  FlatMap<RequestId, std::unique_ptr<Run>> runs_;
  WorkAhead ahead_;
  double inflation_ = 1;                     // of the work ahead
  std::vector<std::unique_ptr<Run>> spare_;  // of runs that are over
  std::vector<Completion> over_;             // visits, since the last advance()
  std::vector<Completion> taken_;            // in advance()
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_PIPELINE_RUNS_H_
