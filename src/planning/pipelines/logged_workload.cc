#include "planning/pipelines/logged_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "foundation/core/stage_visit.h"
#include "planning/pipelines/logged_pipeline.h"

namespace foliot {
namespace {

// REQUIRES: there are some.
Duration median(std::vector<Duration>& values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

struct LoggedExec {
  TimePoint start;
  uint32_t batch_size = 1;
  Duration duration;
  uint32_t lanes = 1;
};

// What was measured of one model.
struct Measured {
  uint32_t pages = 1;
  std::vector<Duration> loads;
  std::vector<LoggedExec> execs;  // sorted by start before use
};

// Requests that are replayed as one stream.
struct Requests {
  std::vector<TimePoint> arrivals;
  std::vector<Duration> slos;
};

// A container or a step is there without a LOAD.
constexpr Duration kNoLoad = Duration::microseconds(1);

// How many times as long as usual EXECs took about a time, by those of the batch size that ran most often. Large
// batches run when much waits, which is when a device is slow: the median of their durations alone would have that in
// it.
class Slowness {
 public:
  // REQUIRES: `execs` is sorted and not empty.
  explicit Slowness(const std::vector<LoggedExec>& execs) {
    std::map<uint32_t, std::vector<Duration>> durations;
    for (const LoggedExec& exec : execs) durations[exec.batch_size].push_back(exec.duration);
    auto& [size, most] = *std::ranges::max_element(durations, {}, [](const auto& each) { return each.second.size(); });
    const double usual = std::max(median(most), Duration::nanoseconds(1)).to_seconds();
    for (const LoggedExec& exec : execs) {
      if (exec.batch_size != size) continue;
      starts_.push_back(exec.start);
      factors_.push_back(exec.duration.to_seconds() / usual);
    }
  }

  // The median of the kNear that are nearest.
  double at(TimePoint time) const {
    const size_t near = std::min(kNear, starts_.size());
    const auto later = static_cast<size_t>(std::ranges::lower_bound(starts_, time) - starts_.begin());
    const size_t first = std::min(later - std::min(later, near / 2), starts_.size() - near);
    std::vector<double> factors(&factors_[first], &factors_[first] + near);
    std::ranges::nth_element(factors, factors.begin() + static_cast<int64_t>(near / 2));
    return std::max(factors[near / 2], 1e-6);
  }

 private:
  static constexpr size_t kNear = 9;
  std::vector<TimePoint> starts_;
  std::vector<double> factors_;
};

// How long the EXECs of a model usually take, by batch size.
std::map<uint32_t, Duration> usual_execs(const std::vector<LoggedExec>& execs) {
  const Slowness slowness(execs);
  std::map<uint32_t, std::vector<Duration>> durations;
  for (const LoggedExec& exec : execs) {
    durations[exec.batch_size].push_back(exec.duration.scaled(1 / slowness.at(exec.start)));
  }
  std::map<uint32_t, Duration> usual;
  for (auto& [size, each] : durations) usual[size] = median(each);
  return usual;
}

ModelProfile profile_of(std::string_view name, Measured& measured, uint64_t page_bytes) {
  ModelProfile profile{.name = std::string(name),
                       .weights_bytes = std::max(1u, measured.pages) * page_bytes,
                       .load = measured.loads.empty() ? kNoLoad : median(measured.loads)};
  Duration least = Duration::nanoseconds(1);
  for (const auto& [size, duration] : usual_execs(measured.execs)) {
    least = std::max(least, duration);
    if (profile.batch_sizes.empty() && size != 1) {
      profile.batch_sizes.push_back(1);  // a single row ran in the smallest
      profile.exec.push_back(least);
    }
    profile.batch_sizes.push_back(size);
    profile.exec.push_back(least);
  }
  profile.load = std::max(profile.load, kNoLoad);
  return profile;
}

// With their times counted from `begin`.
std::vector<SeenExec> seen_execs_of(const ModelProfile& profile, const Measured& measured, TimePoint begin) {
  std::vector<SeenExec> seen;
  for (const LoggedExec& exec : measured.execs) {
    const auto size = std::ranges::find(profile.batch_sizes, exec.batch_size) - profile.batch_sizes.begin();
    const Duration usual = profile.exec[static_cast<size_t>(size)];
    const Duration taken = std::max(exec.duration, Duration::nanoseconds(1));
    seen.push_back({exec.start - begin, taken.to_seconds() / usual.to_seconds()});
  }
  return seen;
}

// By Amdahl's law: how long an EXEC takes on so many lanes, in parts of the time on one.
double time_on(uint32_t lanes, double parallel_share) { return 1 - parallel_share + parallel_share / lanes; }

// The share that these lanes divide among themselves; nullopt: too few EXECs of a batch size ran on all and on one.
std::optional<double> parallel_share_of(const std::vector<LoggedExec>& execs, uint32_t lanes) {
  constexpr size_t kExecsMin = 3;
  struct Sides {
    std::vector<Duration> all, one;
    size_t fewer() const { return std::min(all.size(), one.size()); }
  };
  std::map<uint32_t, Sides> by_size;
  for (const LoggedExec& exec : execs) {
    if (exec.lanes == lanes) by_size[exec.batch_size].all.push_back(exec.duration);
    if (exec.lanes == 1) by_size[exec.batch_size].one.push_back(exec.duration);
  }
  const auto most = std::ranges::max_element(by_size, {}, [](const auto& each) { return each.second.fewer(); });
  if (lanes == 1 || most == by_size.end() || most->second.fewer() < kExecsMin) return std::nullopt;
  const double all = std::max(median(most->second.all), Duration::nanoseconds(1)).to_seconds();
  const double ratio = median(most->second.one).to_seconds() / all;
  return std::clamp((ratio - 1) / (ratio * (1 - 1.0 / lanes)), 0.0, 1.0);
}

class WorkloadReader {
 public:
  WorkloadReader(const Log& log, std::span<const PipelineSpec> pipelines, uint64_t page_bytes, const std::string& name)
      : log_(log), pipelines_(pipelines), page_bytes_(page_bytes), name_(name) {}

  Result<LoggedWorkload> read() {
    measure();
    find_lanes();
    FOLIOT_RETURN_IF_ERROR(find_requests());
    LoggedWorkload logged{.workload = {},
                          .profiles = ProfileTable::v100(),
                          .length = Duration(),
                          .lanes = lanes_,
                          .parallel_share = parallel_share_};
    for (const std::string_view model : models_) FOLIOT_RETURN_IF_ERROR(add_model(model, logged));
    for (const PipelineSpec& pipeline : pipelines_) {
      if (runs_.contains(pipeline.name)) FOLIOT_RETURN_IF_ERROR(add_pipeline(pipeline, logged.workload));
    }
    for (auto& [key, requests] : requests_) add_stream(key, requests, logged);
    const Status status = logged.workload.check();
    return status.ok() ? Result<LoggedWorkload>(std::move(logged)) : status.with_context(name_);
  }

 private:
  // Name of a model or pipeline, and whether its requests have a deadline.
  using StreamKey = std::pair<std::string_view, bool>;

  void measure() {
    for (const ActionRecord& action : log_.actions()) {
      if (!action.done()) continue;
      Measured& measured = measured_[action.model];
      measured.pages = std::max(measured.pages, action.pages);
      if (action.type == ActionType::kLoad) measured.loads.push_back(action.duration);
      if (action.type != ActionType::kInfer) continue;
      // Of a batch that ran in parts, its rows name the last, and say how long all took.
      const RequestRecord* const row = action.requests.empty() ? nullptr : log_.request(action.requests.front());
      const bool answered = row != nullptr && row->exec_duration > Duration();
      if (answered && row->action != action.id) continue;
      measured.execs.push_back({action.start, action.batch_size, answered ? row->exec_duration : action.duration,
                                std::max(1u, action.lanes.count)});
      lanes_ = std::max(lanes_, std::min(action.lanes.end(), kLanesMax));
    }
    for (auto& [model, measured] : measured_) std::ranges::stable_sort(measured.execs, {}, &LoggedExec::start);
  }

  // Durations are of all lanes from here on.
  void find_lanes() {
    std::vector<double> shares;
    for (const auto& [model, measured] : measured_) {
      if (const auto share = parallel_share_of(measured.execs, lanes_)) shares.push_back(*share);
    }
    if (!shares.empty()) {
      const auto middle = shares.begin() + static_cast<int64_t>(shares.size() / 2);
      std::ranges::nth_element(shares, middle);
      parallel_share_ = *middle;
    }
    for (auto& [model, measured] : measured_) {
      for (LoggedExec& exec : measured.execs) {
        if (exec.lanes >= lanes_) continue;
        exec.duration = exec.duration.scaled(time_on(lanes_, parallel_share_) / time_on(exec.lanes, parallel_share_));
      }
    }
  }

  Status find_requests() {
    std::set<uint64_t> runs;
    for (const RequestRecord& request : log_.requests()) {
      if (!visit_slot(request.id)) continue;
      runs.insert(run_of(request.id).value());
      models_.insert(request.model);
    }
    for (const RequestRecord& request : log_.requests()) {
      if (runs.contains(request.id.value())) runs_.insert(request.model);
    }
    for (const PipelineSpec& pipeline : pipelines_) runs_.insert(pipeline.name);  // of which all runs were refused
    for (const RequestRecord& request : log_.requests()) {
      if (visit_slot(request.id)) continue;
      if (!runs_.contains(request.model)) models_.insert(request.model);
      Requests& to = requests_[{request.model, request.slo.has_value()}];
      to.arrivals.push_back(request.arrival);
      if (request.slo) to.slos.push_back(*request.slo);
      begin_ = std::min(begin_, request.arrival);
    }
    if (requests_.empty()) return Status::invalid_argument(fmt::format("{}: has no requests", name_));
    for (const std::string_view run : runs_) {
      const bool given =
          std::any_of(pipelines_.begin(), pipelines_.end(), [&](const auto& p) { return p.name == run; });
      if (!given && !run.empty()) {
        return Status::invalid_argument(fmt::format(
            "{}: has runs of pipeline '{}': give its file with --pipeline {}/pipeline.toml", name_, run, run));
      }
    }
    return Status();
  }

  Status add_model(std::string_view model, LoggedWorkload& to) {
    Measured& measured = measured_[model];
    if (measured.execs.empty()) {
      return Status::invalid_argument(fmt::format(
          "{}: has requests for model '{}', of which no batch has run: how long one takes is not known", name_, model));
    }
    // A name like one of the V100's is not that model.
    ModelProfile profile = profile_of(model, measured, page_bytes_);
    profile.name = "logged " + profile.name;
    to.seen_execs.emplace(model, seen_execs_of(profile, measured, begin_));
    to.workload.groups.push_back({.name = std::string(model), .profile = profile.name});
    return to.profiles.add(std::move(profile)).with_context(name_);
  }

  // What each run visited, by when it came.
  void record_runs(const PipelineSpec& spec, const LoggedPipeline& logged) {
    TimePoint first = TimePoint::infinite_future();
    for (const auto& [key, requests] : requests_) {
      if (key.first != spec.name) continue;
      for (const TimePoint arrival : requests.arrivals) first = std::min(first, arrival);
    }
    auto& runs = recorded_[spec.name];
    for (size_t run = 0; run < logged.arrivals.size(); ++run) {
      if (logged.visits[run]) runs.emplace(first + logged.arrivals[run], recorded_run(spec, logged, run));
    }
  }

  // A stage that is visited for each element was skipped if there were some, and none of them visited it.
  static RecordedRun recorded_run(const PipelineSpec& spec, const LoggedPipeline& logged, size_t run) {
    RecordedRun recorded{.visited = *logged.visits[run]};
    for (size_t stage = 0; stage < spec.stages.size(); ++stage) {
      if (!spec.stages[stage].for_each) continue;
      recorded.elements.resize(spec.stages.size());
      uint8_t& counted = recorded.elements[counting_stage(spec, stage)];
      counted = std::max(counted, logged.elements[stage][run]);
    }
    for (size_t stage = 0; stage < spec.stages.size(); ++stage) {
      if (!spec.stages[stage].for_each || logged.elements[stage][run] > 0) continue;
      if (recorded.elements[counting_stage(spec, stage)] > 0) recorded.visited &= ~(VisitSet{1} << stage);
    }
    return recorded;
  }
  static size_t counting_stage(const PipelineSpec& spec, size_t stage) {
    const auto counts = std::ranges::find(spec.stages, spec.stages[stage].for_each->count.stage, &StageSpec::name);
    return static_cast<size_t>(counts - spec.stages.begin());
  }

  Status add_pipeline(const PipelineSpec& spec, Workload& to) {
    FOLIOT_ASSIGN_OR_RETURN(const LoggedPipeline logged, read_logged_pipeline(spec, log_, name_));
    record_runs(spec, logged);
    const std::vector<VisitSet> visits = logged.known_visits();
    std::vector<uint64_t> visited(spec.stages.size());
    for (const VisitSet each : visits) {
      for (size_t i = 0; i < visited.size(); ++i) visited[i] += each >> i & 1;
    }
    PipelineLoad& load = to.pipelines.emplace_back();
    load.name = spec.name;
    const std::vector<double> elements = elements_of(logged);
    for (size_t i = 0; i < spec.stages.size(); ++i) {
      FOLIOT_ASSIGN_OR_RETURN(std::vector<size_t> after, stages_before(spec, i));
      // Shares are of the runs that visit the first: the one with the fewest.
      // Of those that are visited once.
      std::stable_sort(after.begin(), after.end(), [&](size_t a, size_t b) {
        const auto has_elements = [&](size_t stage) { return spec.stages[stage].for_each.has_value(); };
        return std::tuple(has_elements(a), visited[a]) < std::tuple(has_elements(b), visited[b]);
      });
      const uint64_t reached = after.empty() ? visits.size() : visited[after.front()];
      PipelineLoad::Stage& stage = load.stages.emplace_back();
      stage.name = spec.stages[i].name;
      stage.models = spec.stages[i].model;
      stage.share = reached == 0 ? 0 : static_cast<double>(visited[i]) / static_cast<double>(reached);
      for (const size_t before : after) stage.after.push_back(spec.stages[before].name);
      if (spec.stages[i].for_each) FOLIOT_RETURN_IF_ERROR(add_for_each(spec, i, logged, elements, load));
      if (visited[i] == 0) {
        return Status::invalid_argument(fmt::format("{}: no run of '{}' visited stage '{}' ({}:{}): log more of them",
                                                    name_, spec.name, stage.name, spec.file, spec.stages[i].line));
      }
    }
    return Status();
  }

  // By stages with for_each: visits of the runs that were answered.
  static std::vector<double> elements_of(const LoggedPipeline& logged) {
    std::vector<double> sums(logged.elements.size());
    for (size_t stage = 0; stage < sums.size(); ++stage) {
      for (size_t run = 0; run < logged.elements[stage].size(); ++run) {
        if (logged.visits[run]) sums[stage] += logged.elements[stage][run];
      }
    }
    return sums;
  }

  // The counting stage has the elements of the stage that is visited most often for them; the others are
  // visited for a share of them.
  Status add_for_each(const PipelineSpec& spec, size_t stage, const LoggedPipeline& logged,
                      const std::vector<double>& elements, PipelineLoad& load) const {
    const StageSpec::ForEach& for_each = *spec.stages[stage].for_each;
    size_t most = stage;
    for (size_t i = 0; i < spec.stages.size(); ++i) {
      const bool alike = spec.stages[i].for_each && spec.stages[i].for_each->count.stage == for_each.count.stage;
      if (alike && elements[i] > elements[most]) most = i;
    }
    if (elements[stage] == 0) {
      return Status::invalid_argument(fmt::format("{}: no run of '{}' visited stage '{}' ({}:{}): log more of them",
                                                  name_, spec.name, spec.stages[stage].name, spec.file,
                                                  spec.stages[stage].line));
    }
    load.stages.back().share = elements[stage] / elements[most];
    load.stages.back().for_each = for_each.count.stage;
    auto& counted = std::ranges::find(load.stages, for_each.count.stage, &PipelineLoad::Stage::name)->elements;
    counted.assign(for_each.at_most + size_t{1}, 0);
    for (size_t run = 0; run < logged.elements[most].size(); ++run) {
      if (logged.visits[run]) ++counted[logged.elements[most][run]];
    }
    return Status();
  }

  static Result<std::vector<size_t>> stages_before(const PipelineSpec& spec, size_t stage) {
    std::set<size_t> before;
    const auto add = [&](const TensorName& name) {
      for (size_t i = 0; i < stage; ++i) {
        if (spec.stages[i].name == name.stage) before.insert(i);
      }
    };
    for (const auto& [input, names] : spec.stages[stage].inputs) {
      if (names.size() > 1) {
        return Status::invalid_argument(fmt::format(
            "{}:{}: input '{}' of stage '{}' has {} sources, of which the first that was visited is taken: a "
            "simulation has one",
            spec.file, spec.stages[stage].line, input, spec.stages[stage].name, names.size()));
      }
      add(names.front());
    }
    for (const StageSpec::When& when : spec.stages[stage].when) add(when.output);
    if (spec.stages[stage].for_each) add(spec.stages[stage].for_each->count);
    return std::vector<size_t>(before.begin(), before.end());
  }

  // Of a run that came then; nullopt: it was not answered, so what it would have visited is not known.
  std::optional<RecordedRun> take_recorded(std::string_view pipeline, TimePoint arrival) {
    const auto runs = recorded_.find(pipeline);
    if (runs == recorded_.end()) return std::nullopt;
    auto run = runs->second.extract(arrival);
    return run ? std::optional(std::move(run.mapped())) : std::nullopt;
  }

  void add_stream(const StreamKey& key, Requests& requests, LoggedWorkload& to) {
    std::sort(requests.arrivals.begin(), requests.arrivals.end());
    Stream& stream = to.workload.streams.emplace_back();
    stream.name = fmt::format("{}{}", key.first, key.second ? "" : ", best effort");
    if (runs_.contains(key.first)) {
      stream.pipeline = key.first;
    } else {
      stream.models = {std::string(key.first)};
    }
    stream.best_effort = !key.second;
    if (key.second) stream.slo = std::max(median(requests.slos), Duration::nanoseconds(1));
    stream.arrivals.kind = ArrivalKind::kReplay;
    for (const TimePoint arrival : requests.arrivals) {
      stream.arrivals.instants.push_back(arrival - begin_);
      if (!stream.pipeline.empty()) stream.recorded.push_back(take_recorded(key.first, arrival));
    }
    to.length = std::max(to.length, stream.arrivals.instants.back() + Duration::milliseconds(1));
  }

  const Log& log_;
  const std::span<const PipelineSpec> pipelines_;
  const uint64_t page_bytes_;
  const std::string& name_;
  std::map<std::string_view, Measured> measured_;
  uint32_t lanes_ = 1;
  double parallel_share_ = LoggedWorkload::kParallelShare;
  std::set<std::string_view> models_;
  std::set<std::string_view> runs_;                                                     // pipelines
  std::map<std::string, std::multimap<TimePoint, RecordedRun>, std::less<>> recorded_;  // by pipelines: runs
  std::map<StreamKey, Requests> requests_;
  TimePoint begin_ = TimePoint::infinite_future();
};

}  // namespace

Result<LoggedWorkload> read_logged_workload(const Log& log, std::span<const PipelineSpec> pipelines,
                                            uint64_t page_bytes, const std::string& name) {
  return WorkloadReader(log, pipelines, page_bytes, name).read();
}

}  // namespace foliot
