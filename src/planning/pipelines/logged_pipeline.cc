#include "planning/pipelines/logged_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "foundation/core/stage_slots.h"
#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

struct Run {
  TimePoint arrival;
  bool answered = false;
  VisitSet visits = 0;
  std::vector<uint8_t> elements{};  // by stages: visits
};
using Runs = std::unordered_map<uint64_t, Run>;

// Durations by kind of device and batch size.
using Batches = std::map<std::pair<std::string_view, uint32_t>, std::vector<Duration>>;

constexpr double kLoggedQuantiles[] = {0.5, 0.9, 0.99};

Duration at_quantile(const std::vector<Duration>& sorted, double quantile) {
  const auto rank = static_cast<size_t>(quantile * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

// The smallest size that was seen stands for a single row: that ran in it.
void begin_with_one(KindProfile& profile) {
  if (profile.batch_sizes.front() == 1) return;
  profile.batch_sizes.insert(profile.batch_sizes.begin(), 1);
  for (DurationQuantile& quantile : profile.quantiles) {
    quantile.of_batches.insert(quantile.of_batches.begin(), quantile.of_batches.front());
  }
}

StageProfile make_profile(const std::string& stage, double scale_factor, Batches& batches) {
  StageProfile profile{.stage = stage, .scale_factor = scale_factor, .kinds = {}, .has_visits = true};
  for (auto& [key, durations] : batches) {
    const auto& [kind, size] = key;
    if (durations.size() < kLoggedBatchesMin || size > kPlannedBatchMax) continue;
    if (profile.kinds.empty() || profile.kinds.back().kind != kind) {
      KindProfile& added = profile.kinds.emplace_back();
      added.kind = kind;
      for (const double quantile : kLoggedQuantiles) added.quantiles.push_back({quantile, {}});
    }
    std::sort(durations.begin(), durations.end());
    KindProfile& to = profile.kinds.back();
    to.batch_sizes.push_back(size);
    for (DurationQuantile& each : to.quantiles) {
      const Duration nanosecond = Duration::nanoseconds(1);
      each.of_batches.push_back(std::max(at_quantile(durations, each.quantile), nanosecond));
    }
  }
  for (KindProfile& each : profile.kinds) {
    begin_with_one(each);
    each.raise_to_smaller();
  }
  return profile;
}

class LogReader {
 public:
  LogReader(const PipelineSpec& spec, const Log& log, const std::string& name)
      : spec_(spec), log_(log), name_(name), slots_(visits_most(spec)) {}

  Result<LoggedPipeline> read() {
    FOLIOT_RETURN_IF_ERROR(find_runs());
    FOLIOT_RETURN_IF_ERROR(find_visits());
    find_batches();
    LoggedPipeline logged;
    std::vector<const Run*> runs;
    for (const auto& [id, run] : runs_) runs.push_back(&run);
    std::sort(runs.begin(), runs.end(), [](const Run* a, const Run* b) {
      return std::tie(a->arrival, a->answered, a->visits, a->elements) <
             std::tie(b->arrival, b->answered, b->visits, b->elements);
    });
    logged.elements.resize(spec_.stages.size());
    for (const Run* run : runs) {
      logged.arrivals.push_back(run->arrival - runs.front()->arrival);
      logged.visits.push_back(run->answered ? std::optional(run->visits) : std::nullopt);
      for (size_t i = 0; i < spec_.stages.size(); ++i) {
        if (spec_.stages[i].for_each) logged.elements[i].push_back(run->elements[i]);
      }
    }
    for (size_t i = 0; i < spec_.stages.size(); ++i) {
      std::vector<double> shares = visits_shares(i);
      StageProfile profile = make_profile(spec_.stages[i].name, mean_of_shares(shares), batches_[i]);
      if (spec_.stages[i].for_each) profile.visits_shares = std::move(shares);
      logged.profiles.emplace(profile.stage, std::move(profile));
    }
    return logged;
  }

 private:
  static std::vector<uint32_t> visits_most(const PipelineSpec& spec) {
    std::vector<uint32_t> most;
    for (const StageSpec& stage : spec.stages) most.push_back(stage.for_each ? stage.for_each->at_most : 1);
    return most;
  }

  // Of the runs that were answered, how many made 0, 1, 2, ... visits.
  std::vector<double> visits_shares(size_t stage) const {
    std::vector<double> shares(2);
    for (const auto& [id, run] : runs_) {
      if (!run.answered) continue;
      const uint8_t visits = run.elements[stage];
      if (visits >= shares.size()) shares.resize(visits + size_t{1});
      ++shares[visits];
    }
    return shares;
  }

  Status find_runs() {
    std::set<std::string_view> others;
    for (const RequestRecord& request : log_.requests()) {
      if (visit_slot(request.id)) continue;
      if (request.model != spec_.name) {
        if (others.size() < kNamesMost) others.insert(request.model);
        continue;
      }
      runs_[request.id.value()] = {request.arrival, request.served(), 0, std::vector<uint8_t>(spec_.stages.size())};
      answered_ += request.served() ? 1 : 0;
    }
    if (runs_.empty()) {
      std::string text = others.empty() ? "nothing" : "";
      for (const std::string_view other : others) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", other);
      return Status::invalid_argument(
          fmt::format("{}: has no run of pipeline '{}' ({}); it has requests for {}: serve the pipeline with --log",
                      name_, spec_.name, spec_.file, text));
    }
    if (answered_ == 0) {
      return Status::invalid_argument(
          fmt::format("{}: none of the {} runs of '{}' was answered, so what they visit is not known: log a "
                      "lower load, or without deadlines",
                      name_, runs_.size(), spec_.name));
    }
    return Status();
  }

  Status find_visits() {
    for (const RequestRecord& request : log_.requests()) {
      const std::optional<uint32_t> slot = visit_slot(request.id);
      const auto run = slot ? runs_.find(run_of(request.id).value()) : runs_.end();
      if (run == runs_.end()) continue;
      const std::optional<StageSlots::Place> place = slots_.find(*slot);
      if (!place || spec_.stages[place->stage].model != request.model) {
        return Status::invalid_argument(fmt::format(
            "{}: run {} of '{}' visited stage {} with model '{}', which {} does not have there: plan with the file "
            "that was served",
            name_, run->first, spec_.name, (place ? place->stage : *slot) + 1, request.model, spec_.file));
      }
      run->second.visits |= VisitSet{1} << place->stage;
      ++run->second.elements[place->stage];
    }
    for (auto& [id, run] : runs_) add_empty_stages(run);
    return Status();
  }

  void add_empty_stages(Run& run) const {
    for (size_t i = 0; i < spec_.stages.size(); ++i) {
      if (!spec_.stages[i].for_each) continue;
      const auto counting = std::ranges::find(spec_.stages, spec_.stages[i].for_each->count.stage, &StageSpec::name);
      if ((run.visits >> (counting - spec_.stages.begin()) & 1) != 0) run.visits |= VisitSet{1} << i;
    }
  }

  void find_batches() {
    batches_.resize(spec_.stages.size());
    for (const ActionRecord& action : log_.actions()) {
      if (action.type != ActionType::kInfer || !action.done()) continue;
      VisitSet stages = 0;
      for (uint32_t row = 0; row < action.rows; ++row) {
        const std::optional<uint32_t> slot = visit_slot(action.requests[row]);
        if (!slot || !runs_.contains(run_of(action.requests[row]).value())) continue;
        if (const auto place = slots_.find(*slot)) stages |= VisitSet{1} << place->stage;
      }
      const std::string_view kind = action.kind.empty() ? kDefaultKind : action.kind;
      const Duration duration = action.input_duration + action.duration + action.output_duration;
      for (size_t i = 0; i < batches_.size(); ++i) {
        if ((stages >> i & 1) != 0) batches_[i][{kind, action.batch_size}].push_back(duration);
      }
    }
  }

  static constexpr size_t kNamesMost = 8;  // in an error

  const PipelineSpec& spec_;
  const Log& log_;
  const std::string& name_;
  const StageSlots slots_;
  Runs runs_;
  uint64_t answered_ = 0;
  std::vector<Batches> batches_;  // by stages
};

void add_batch_size(const KindProfile& from, uint32_t size, KindProfile& to) {
  const auto at = std::lower_bound(to.batch_sizes.begin(), to.batch_sizes.end(), size);
  if (at != to.batch_sizes.end() && *at == size) return;
  const auto position = at - to.batch_sizes.begin();
  to.batch_sizes.insert(at, size);
  for (DurationQuantile& quantile : to.quantiles) {
    quantile.of_batches.insert(quantile.of_batches.begin() + position, from.duration(size, quantile.quantile));
  }
}

}  // namespace

std::vector<VisitSet> LoggedPipeline::known_visits() const {
  std::vector<VisitSet> known;
  for (const std::optional<VisitSet>& each : visits) {
    if (each) known.push_back(*each);
  }
  return known;
}

QueryTrace LoggedPipeline::trace(const PlannedPipeline& pipeline, uint64_t seed) const {
  QueryTrace trace = QueryTrace::draw(pipeline, arrivals, seed);
  for (size_t i = 0; i < visits.size(); ++i) {
    if (!visits[i]) continue;
    trace.visits[i] = *visits[i];
    for (size_t stage = 0; stage < trace.elements.size(); ++stage) {
      if (!elements[stage].empty()) trace.elements[stage][i] = elements[stage][i];
    }
  }
  return trace;
}

Result<LoggedPipeline> read_logged_pipeline(const PipelineSpec& spec, const Log& log, const std::string& name) {
  return LogReader(spec, log, name).read();
}

void add_missing_profiles(const StageProfiles& from, StageProfiles& to) {
  for (const auto& [stage, profile] : from) {
    const auto [found, added] = to.emplace(stage, profile);
    if (added) continue;
    for (const KindProfile& kind : profile.kinds) {
      std::vector<KindProfile>& kinds = found->second.kinds;
      const auto same =
          std::find_if(kinds.begin(), kinds.end(), [&](const auto& each) { return each.kind == kind.kind; });
      if (same == kinds.end()) {
        kinds.push_back(kind);
        continue;
      }
      for (const uint32_t size : kind.batch_sizes) add_batch_size(kind, size, *same);
      same->raise_to_smaller();
    }
  }
}

}  // namespace foliot
