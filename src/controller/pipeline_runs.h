// PipelineRuns: follows each run of a pipeline through its stages (InferLine, section 4.1;
// core/pipeline_info.h says what is visited when). Each visit is a Request like any other, of
// which policies need not know that it belongs to a run.
//
// A visit's reserve is the least time of what follows on the longest path, so that a stage may
// use all the slack of its run, and none that a later stage needs. A stage that is visited
// under conditions counts while at least half of the runs visit it.
//
// A run is refused when it comes if idle devices could not meet its path (kUnmeetable). When a
// visit is refused, the run's visits that wait are cancelled, and the run is refused for the
// same reason, which names the stage, once none of its visits is with a worker: until then
// their payloads are in use.
//
// Threading: not thread-safe; belongs to the controller.
#ifndef FOLIOT_CONTROLLER_PIPELINE_RUNS_H_
#define FOLIOT_CONTROLLER_PIPELINE_RUNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "base/time.h"
#include "controller/cluster.h"
#include "core/pipeline_info.h"
#include "core/request.h"

namespace foliot {

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
  PipelineRuns(const Cluster& cluster, Owner& owner) : cluster_(cluster), owner_(owner) {}

  // As PipelineSink.
  void add(std::shared_ptr<const PipelineInfo> pipeline);
  void remove(PipelineId pipeline);

  // Exactly one run_over() follows, perhaps before this returns. REQUIRES: `run` names a
  // pipeline; run.id and run.payload have room for stages (core/stage_visit.h), and no run
  // that is not over has this id.
  void begin(const Request& run, TimePoint now);
  // Unless it is over.
  void cancel(RequestId run, Refusal reason, TimePoint now);
  // Whether it is a visit of a run, whose completion belongs to visit_over().
  bool is_visit(RequestId request) const;
  // Takes note: nothing follows before advance().
  void visit_over(const Completion& completion) { over_.push_back(completion); }
  // Goes on with the runs of which visits are over. Returns whether any were.
  bool advance(TimePoint now);

  // Runs that are not over.
  size_t size() const { return runs_.size(); }

 private:
  struct Pipeline {
    std::shared_ptr<const PipelineInfo> info;
    // By stage: the stages that depend on it, by inputs or conditions.
    std::vector<std::vector<uint32_t>> successors;
    std::vector<double> shares;  // by stage: of the last runs, those that visited it
    // By stage, for runs of this bucket at `measured`: the least time of what follows, and that
    // with the stage itself.
    std::vector<Duration> rests;
    std::vector<Duration> paths;
    Duration whole;  // the longest path
    TimePoint measured;
    BucketId bucket;
  };
  struct Run {
    Request request;
    std::shared_ptr<Pipeline> pipeline;
    StageSet visited;    // and over
    StageSet skipped;    // for good
    StageSet under_way;  // submitted, and not over
    std::array<ConditionSet, kStagesMax> conditions{};
    Completion completion;  // so far; with a refusal: the run is to end
  };
  enum class Step : uint8_t { kVisit, kSkip, kWait };

  std::shared_ptr<Pipeline> find(PipelineId pipeline) const;
  void measure(Pipeline& pipeline, const Request& run, TimePoint now) const;
  // The least time of a visit.
  Duration least_time(const PipelineStage& stage, const Request& run) const;
  void take(const Completion& visit, TimePoint now);
  void take_served(Run& run, uint32_t stage, const Completion& visit);
  // Visits what can be, and ends the run where nothing is left.
  void go_on(RequestId run, TimePoint now);
  Step next_step(const Run& run, uint32_t stage) const;
  void visit(Run& run, uint32_t stage, TimePoint now);
  void refuse(Run& run, Refusal reason, const std::string& detail, TimePoint earliest);
  void cancel_visits(RequestId run, Refusal reason, TimePoint now);
  void end(RequestId run, TimePoint now);
  std::unique_ptr<Run> take_spare();

  const Cluster& cluster_;
  Owner& owner_;
  std::vector<std::shared_ptr<Pipeline>> pipelines_;
  FlatMap<RequestId, std::unique_ptr<Run>> runs_;
  std::vector<std::unique_ptr<Run>> spare_;  // of runs that are over
  std::vector<Completion> over_;             // visits, since the last advance()
  std::vector<Completion> taken_;            // in advance()
};

}  // namespace foliot

#endif  // FOLIOT_CONTROLLER_PIPELINE_RUNS_H_
