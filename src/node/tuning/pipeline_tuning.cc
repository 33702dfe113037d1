#include "node/tuning/pipeline_tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <set>
#include <utility>

#include "foundation/platform/clock.h"
#include "node/files/access_files.h"
#include "node/files/definition_files.h"

namespace foliot {
namespace {

constexpr int kTuningNice = 10;

std::set<std::string> names_of(const std::vector<PipelineTuners::StageReplicas>& replicas) {
  std::set<std::string> names;
  for (const auto& each : replicas) names.insert(each.pipeline);
  return names;
}

// "decode 2, fine 3"
std::string replicas_of(const std::string& pipeline, const std::vector<PipelineTuners::StageReplicas>& replicas) {
  std::vector<std::string> texts;
  for (const auto& each : replicas) {
    if (each.pipeline == pipeline) texts.push_back(fmt::format("{} {}", each.stage, each.wanted));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Result<TunerMethod> find_pipeline_tuner(std::string_view name) {
  if (name == "by_ratio") return TunerMethod(TunerOptions::by_ratio());
  if (name == "printed") return TunerMethod(TunerOptions{.rises_to_plan = true});
  if (name == "replan") return TunerMethod(ReplanOptions::of_server());
  return Status::not_found(
      fmt::format("there is no tuner '{}' for pipelines; there are by_ratio, printed and replan", name));
}

PipelineTuning::PipelineTuning(PipelineTuningOptions options, TuningMetrics& metrics, SetTargets set_targets,
                               OnLine on_line)
    : options_(std::move(options)),
      metrics_(metrics),
      set_targets_(std::move(set_targets)),
      on_line_(std::move(on_line)),
      tuners_(options_.tuner) {}

Status PipelineTuning::open() {
  // It knows the files as they are read here.
  watch_ = std::make_unique<FileWatch>(std::vector<WatchedFiles>{definition_files(
      options_.plans, kPlanFile,
      [this]() -> Result<std::vector<std::string>> {
        FOLIOT_RETURN_IF_ERROR(read_plans());
        return std::vector<std::string>();
      },
      [this](const std::string& line) { on_line_(line, true); })});
  return read_plans();
}

Status PipelineTuning::read_plans() {
  FOLIOT_ASSIGN_OR_RETURN(auto plans, scan_plans(options_.plans));
  tuners_.set_plans(std::move(plans));
  has_plans_.store(tuners_.has_plans(), std::memory_order_relaxed);
  return Status();
}

Status PipelineTuning::start() {
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "pipelines", .nice = kTuningNice}, [this] { run(); }));
  return Status();
}

void PipelineTuning::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

// ---- Events ----

void PipelineTuning::on_pipeline(const PipelineInfo& pipeline) {
  TunedPipeline tuned(pipeline);
  const MutexLock lock(mutex_);
  changes_.added.push_back(std::move(tuned));
}

void PipelineTuning::on_pipeline_removed(PipelineId pipeline) {
  const MutexLock lock(mutex_);
  changes_.removed.push_back(pipeline);
}

void PipelineTuning::on_run(const Request& /*request*/, const PipelineInfo* pipeline, TimePoint now) {
  if (pipeline == nullptr || !has_plans_.load(std::memory_order_relaxed)) return;
  if (!arrivals_.push({pipeline->id, now})) uncounted_.fetch_add(1, std::memory_order_relaxed);
}

void PipelineTuning::on_device(const DeviceChange& change, TimePoint /*now*/) {
  const MutexLock lock(mutex_);
  Device& device = devices_[change.device];
  if (change.joined) device.kind = change.kind;
  device.up = change.state == DeviceState::kUp;
}

// ---- The thread ----

void PipelineTuning::run() {
  while (true) {
    // Without plans there is nothing to do but to look for some.
    const Duration wait = tuners_.has_plans() ? kInterval : kReloadInterval;
    {
      MutexLock lock(mutex_);
      if (stop_.wait_for(mutex_, wait, [this]() REQUIRES(mutex_) { return stopping_; })) return;
    }
    step(monotonic_now());
  }
}

PipelineTuning::Changes PipelineTuning::take_changes() {
  const MutexLock lock(mutex_);
  Changes changes = std::exchange(changes_, Changes());
  for (const auto& [id, device] : devices_) {
    if (device.up) ++changes.up[device.kind];
  }
  return changes;
}

void PipelineTuning::take_arrivals() {
  for (size_t i = 0; i < kArrivalsMax; ++i) {
    const std::optional<Arrival> arrival = arrivals_.pop();
    if (!arrival) return;
    tuners_.arrive(arrival->pipeline, arrival->at);
  }
}

void PipelineTuning::step(TimePoint now) {
  if (now - looked_ >= kReloadInterval) {
    looked_ = now;
    watch_->look();
  }
  Changes changes = take_changes();
  for (TunedPipeline& pipeline : changes.added) tuners_.add(std::move(pipeline));
  take_arrivals();
  for (const PipelineId pipeline : changes.removed) tuners_.remove(pipeline);
  PipelineTuners::Step step = tuners_.step(changes.up, now);
  {
    const MutexLock lock(mutex_);
    devices_wanted_ = step.devices;
  }
  report_troubles(step);
  report_replicas(step);
  if (step.targets == targets_) return;
  targets_ = step.targets;
  set_targets_(Targets{std::move(step.targets)});
}

std::map<std::string, uint32_t> PipelineTuning::devices_wanted() {
  const MutexLock lock(mutex_);
  return devices_wanted_;
}

void PipelineTuning::report_troubles(const PipelineTuners::Step& step) {
  for (const auto& [pipeline, trouble] : step.troubles) {
    const auto known = troubles_.find(pipeline);
    if (known == troubles_.end() || known->second != trouble) on_line_(trouble, true);
  }
  troubles_ = step.troubles;
  // Their numbers go on changing.
  for (const auto& [kind, shortage] : step.shortages) {
    if (!shortages_.contains(kind)) on_line_(shortage, true);
  }
  shortages_ = step.shortages;
  const uint64_t uncounted = uncounted_.exchange(0, std::memory_order_relaxed);
  if (uncounted > 0 && !uncounted_reported_) {
    on_line_(fmt::format("more than {} runs of pipelines came between two steps of the tuners, and {} were not counted",
                         kArrivalsMax, uncounted),
             true);
  }
  uncounted_reported_ = uncounted > 0;
}

void PipelineTuning::report_replicas(const PipelineTuners::Step& step) {
  if (step.replicas == replicas_) return;
  const std::set<std::string> before = names_of(replicas_);
  for (const std::string& name : names_of(step.replicas)) {
    if (before.contains(name)) continue;
    on_line_(fmt::format("pipeline '{}' is tuned; replicas: {}", name, replicas_of(name, step.replicas)), false);
  }
  replicas_ = step.replicas;
  std::vector<TuningMetrics::Stage> stages;
  for (const auto& each : replicas_) stages.push_back({each.pipeline, each.stage, each.wanted, each.planned});
  metrics_.set(stages);
}

}  // namespace foliot
