// Workload: groups of models, and streams of requests to them with their rates and
// deadlines. The same workload drives the simulator and a load generator;
// workload_file.h reads one from TOML, workload_arrivals.h plays it.
//
// Models are numbered from 0 in the order of the groups.
#ifndef FOLIOT_LOAD_WORKLOAD_WORKLOAD_H_
#define FOLIOT_LOAD_WORKLOAD_WORKLOAD_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "load/workload/arrivals.h"
#include "load/workload/function_trace.h"

namespace foliot {

// Copies of one model that share everything but their weights.
struct ModelGroup {
  // One kind of device that can run them.
  struct RunsOn {
    std::string kind;
    std::string profile;  // in place of the group's; empty: the same
  };
  std::string name;
  std::string profile;                               // name in a ProfileTable
  uint32_t count = 1;                                // of copies: NAME if 1, else NAME_0, NAME_1, ...
  std::optional<Duration> slo;                       // of requests whose stream says nothing; nullopt: best effort
  double weight = 1;                                 // ModelInfo::weight
  std::optional<Duration> batch_delay = Duration();  // ModelInfo::batch_delay
  std::vector<RunsOn> runs_on{};                     // empty: devices of every kind
};

// A pipeline of models (foundation/core/pipeline_info.h), as far as times depend on it.
struct PipelineLoad {
  struct Stage {
    std::string name;
    std::string models;                // name of a group of one model
    std::vector<std::string> after{};  // earlier stages whose outputs it takes
    // Earlier stages of which it takes the output of the first, in this order, that was visited.
    std::vector<std::string> first_of{};
    // Of the runs that visit the first of these, so many visit this one; 1: all.
    double share = 1;
    // Of what it finds: how probable 0, 1, 2, ... elements are, beside each other. Empty: it counts none.
    std::vector<double> elements{};
    std::string for_each{};  // an earlier stage: a visit for each of its elements; empty: one visit

    uint32_t elements_most() const { return elements.empty() ? 0 : static_cast<uint32_t>(elements.size() - 1); }
  };
  std::string name;
  std::optional<Duration> slo;  // of runs whose stream says nothing; nullopt: best effort
  std::vector<Stage> stages;    // each after those that it follows

  // nullptr: there is none of this name.
  const Stage* find(std::string_view stage) const {
    const auto found = std::ranges::find(stages, stage, &Stage::name);
    return found == stages.end() ? nullptr : &*found;
  }
};

// What a run of a pipeline visited, as it was observed.
struct RecordedRun {
  uint32_t visited = 0;             // bit i: stage i
  std::vector<uint8_t> elements{};  // by stages: what it counted; empty: no stage counts

  bool operator==(const RecordedRun&) const = default;
};

// Requests to some of the groups, or to a pipeline. Exactly one of these brings them:
//   concurrency > 0: a closed loop; so many users per model, each of which waits for
//                    its answer, then for `think_time`, and asks again;
//   trace:           function f asks model f modulo the number of models;
//   else:            an open loop; `arrivals`.
struct Stream {
  std::string name;
  std::vector<std::string> models;  // names of groups; empty: all
  std::string pipeline{};           // in place of models; empty: none
  // Of the whole stream.
  ArrivalOptions arrivals{};
  // Of runs that are replayed, by the instants of arrivals: what each visits. nullopt: that is drawn. Empty: of all.
  std::vector<std::optional<RecordedRun>> recorded{};
  // Every model has a process of its own, and its share of the rate by popularity;
  // else one process draws a model for each request.
  bool per_model = false;
  double zipf = 0;  // popularity: model i in proportion to 1 / (i + 1)^zipf; 0: uniform
  // Which of the models is model 0 of that, and so on: 0: they stay in the order of the
  // groups; else in an order drawn with this seed.
  uint64_t popularity_seed = 0;
  uint32_t concurrency = 0;
  // A user whose request is refused at once would ask again for ever in the same
  // instant: never zero.
  Duration think_time = Duration::milliseconds(1);
  std::shared_ptr<const FunctionTrace> trace;  // shared by all runs of the workload
  // Overrides the groups' SLO; best_effort: none at all.
  std::optional<Duration> slo;
  bool best_effort = false;
  // Since the beginning of the run; `stop` is the first instant without requests.
  Duration start;
  Duration stop = Duration::max();
  // Models become active one by one, the first at once (Clockwork, Figure 6); the
  // rate is that of all active ones together. Zero: all at once.
  Duration activate_every;
  // The tenant of the requests; empty: none. Streams of one tenant have the same
  // weight.
  std::string tenant;
  uint32_t weight = 1;  // of the tenant's share (control/controller/fair_share.h)
  // Its position in the workload that this one is a part of: with one seed its requests
  // come at the same instants in both. Ascending; nullopt: its own position.
  std::optional<uint32_t> position;
};

struct Workload {
  std::vector<ModelGroup> groups;
  std::vector<PipelineLoad> pipelines{};
  std::vector<Stream> streams;

  uint32_t models() const;
  // The first model of a group.
  uint32_t first_model(size_t group) const;
  // groups[group_of_models()[model]].
  std::vector<uint32_t> group_of_models() const;
  std::vector<std::string> model_names() const;
  // Position of the pipeline that a stream asks; nullopt: it asks models.
  std::optional<uint32_t> pipeline_of(const Stream& stream) const;
  // The models that a stream asks, or first asks of a pipeline, in the order of its popularity.
  std::vector<uint32_t> models_of(const Stream& stream) const;
  // Of a stream's requests to models of this group, or to its pipeline; max(): best effort.
  Duration slo_of(const Stream& stream, const ModelGroup& group) const;

  // Errors: kInvalidArgument naming group or stream and what is wrong.
  Status check() const;
  Status check_groups() const;
  Status check_pipelines() const;
  Status check_recorded(const Stream& stream) const;
  static Status check_elements(const PipelineLoad& pipeline, const PipelineLoad::Stage& stage);
  Status check_stream(const Stream& stream) const;
};

}  // namespace foliot

#endif  // FOLIOT_LOAD_WORKLOAD_WORKLOAD_H_
