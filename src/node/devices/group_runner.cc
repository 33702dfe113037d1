#include "node/devices/group_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"

namespace foliot {
namespace {

// Until all executors of a group wait for its window.
constexpr Duration kGroupLead = Duration::microseconds(300);
constexpr uint32_t kGroupPartsMax = 4;

Duration median(std::vector<Duration>& durations) {
  std::ranges::sort(durations);
  return durations[durations.size() / 2];
}

float spread_of(const std::vector<Duration>& durations, Duration middle) {
  double squares = 0;
  for (const Duration duration : durations) squares += std::pow((duration - middle).to_seconds(), 2);
  return static_cast<float>(std::sqrt(squares / static_cast<double>(durations.size())) / middle.to_seconds());
}

}  // namespace

Result<std::unique_ptr<GroupRunner>> GroupRunner::create(const DevicePlace& place,
                                                         const std::vector<CompiledModel>& models) {
  if (place.lanes < 2)
    return Status::invalid_argument("a device of one lane runs nothing beside others; raise --lanes");
  std::unique_ptr<GroupRunner> runner(new GroupRunner(place));
  FOLIOT_RETURN_IF_ERROR(runner->start(models));
  return runner;
}

GroupRunner::~GroupRunner() {
  if (worker_ != nullptr) worker_->stop();
}

Status GroupRunner::start(const std::vector<CompiledModel>& models) {
  LocalWorkerOptions options;
  options.devices = {place_};
  options.contexts = std::min(kGroupPartsMax, place_.lanes) + 1;
  options.models_max = static_cast<uint32_t>(models.size());
  uint64_t pages = 0;
  for (const CompiledModel& model : models) pages += model.package.program->pages(kPageBytesMax);
  options.page_bytes = kPageBytesMax;
  options.page_cache_bytes = pages * kPageBytesMax;
  worker_ = std::make_unique<LocalWorker>(options, place_, models, std::vector<uint64_t>());
  FOLIOT_RETURN_IF_ERROR(worker_->start(*this, *this));
  for (uint32_t id = 0; id < models.size(); ++id) {
    FOLIOT_RETURN_IF_ERROR(
        add(models[id], ModelId(id)).with_context(fmt::format("model '{}'", models[id].folder.name)));
  }
  return Status();
}

Status GroupRunner::add(const CompiledModel& compiled, ModelId id) {
  const auto info =
      std::make_shared<const ModelInfo>(compiled.info(id, worker_->memory().page_bytes, std::string(kDefaultKind)));
  FOLIOT_RETURN_IF_ERROR(worker_->make_room(*compiled.package.program));
  FOLIOT_ASSIGN_OR_RETURN(WorkerModel added, worker_->engine().add({info, compiled.package}));
  FOLIOT_RETURN_IF_ERROR(worker_->engine().prepare(id, 0));
  worker_->worker().add_model(std::move(added));
  Model& model = models_.emplace_back(Model{.info = info});
  uint64_t largest = 0;
  const auto bytes_of = [&](const std::vector<TensorSpec>& tensors, const Bucket& bucket) {
    std::vector<uint64_t> bytes;
    for (const TensorSpec& tensor : tensors) {
      bytes.push_back(byte_size(tensor.type, shape_in(tensor, bucket)));
      largest = std::max(largest, bytes.back());
    }
    return bytes;
  };
  for (const Bucket& bucket : info->buckets) {
    model.input_bytes.push_back(bytes_of(info->inputs, bucket));
    model.output_bytes.push_back(bytes_of(info->outputs, bucket));
  }
  zeros_.resize(std::max<size_t>(zeros_.size(), largest));
  sink_.resize(zeros_.size());
  const std::array<Action, 1> load{Action{
      .id = ActionId(++actions_), .type = ActionType::kLoad, .model = id, .latest = TimePoint::infinite_future()}};
  return run(load).status();
}

// A payload says which model and bucket its row is of.
std::span<const std::byte> GroupRunner::input(PayloadHandle payload, uint32_t index) {
  const Model& model = models_[payload.value() >> 32];
  return std::span(zeros_).first(model.input_bytes[static_cast<uint32_t>(payload.value())][index]);
}

// Outputs of several are written to one place: none is read.
std::span<std::byte> GroupRunner::output(PayloadHandle payload, uint32_t index) {
  const Model& model = models_[payload.value() >> 32];
  return std::span(sink_).first(model.output_bytes[static_cast<uint32_t>(payload.value())][index]);
}

void GroupRunner::report(const Outcome& outcome) {
  const MutexLock lock(mutex_);
  outcomes_[outcome.action] = outcome;
  over_.notify_all();
}

Action GroupRunner::action(const OverlapPredictor::Part& part, LaneInterval lanes, ContextIndex context) {
  const ModelInfo& info = model(part.model);
  Action action{.id = ActionId(++actions_),
                .model = info.id,
                .latest = TimePoint::infinite_future(),
                .bucket = BucketId(static_cast<uint16_t>(part.bucket)),
                .batch_size = info.only().batch_sizes.front(),
                .lanes = lanes,
                .range = part.range,
                .context = context};
  const PayloadHandle payload(uint64_t{part.model} << 32 | part.bucket);
  for (uint32_t row = 0; row < action.batch_size; ++row) action.rows.add({RequestId(part.model + 1), payload});
  return action;
}

Result<std::vector<Outcome>> GroupRunner::run(std::span<const Action> actions) {
  for (const Action& action : actions) worker_->worker().send(action);
  std::vector<Outcome> outcomes;
  MutexLock lock(mutex_);
  for (const Action& action : actions) {
    over_.wait(mutex_, [&]() REQUIRES(mutex_) { return outcomes_.contains(action.id); });
    outcomes.push_back(outcomes_.extract(action.id).mapped());
    if (outcomes.back().done()) continue;
    return Status::internal(fmt::format("model '{}': {} was not done: {}", model(action.model.value()).name,
                                        to_string(action.type), to_string(outcomes.back().status)));
  }
  return outcomes;
}

Result<Duration> GroupRunner::run_alone(const OverlapPredictor::Part& part, LaneInterval lanes) {
  const std::array<Action, 1> actions{action(part, lanes, 0)};
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes, run(actions));
  return outcomes[0].duration;
}

// Operators one after the other say where in an EXEC each ends, whole EXECs how long it takes.
Result<ProfiledModel> GroupRunner::profile(uint32_t position, uint32_t repeats) {
  const ModelInfo& info = model(position);
  ProfiledModel profile{.name = info.name, .content = info.content, .operators = operators(position)};
  for (uint32_t bucket = 0; bucket < info.buckets.size(); ++bucket) {
    auto& widths = profile.ends.emplace_back();
    for (const uint32_t width : lane_widths(lane_count())) {
      std::vector<Duration> wholes;
      std::vector<Duration> operators(profile.operators, Duration::max());
      for (uint32_t turn = 0; turn <= repeats; ++turn) {
        FOLIOT_ASSIGN_OR_RETURN(const Duration whole, run_alone({position, bucket, {}}, {0, width}));
        if (turn > 0) wholes.push_back(whole);  // the first one finds its caches cold
        for (uint32_t i = 0; profile.operators > 1 && i < profile.operators; ++i) {
          const uint32_t last = i + 1 == profile.operators ? OperatorRange::kEnd : i + 1;
          FOLIOT_ASSIGN_OR_RETURN(const Duration taken, run_alone({position, bucket, {i, last}}, {0, width}));
          operators[i] = std::min(operators[i], taken);
        }
      }
      const double whole = static_cast<double>(median(wholes).nanoseconds());
      if (profile.operators == 1) operators[0] = Duration::nanoseconds(1);
      const double sum =
          static_cast<double>(std::accumulate(operators.begin(), operators.end(), Duration()).nanoseconds());
      std::vector<float>& ends = widths.emplace_back();
      double until = 0;
      for (const Duration taken : operators) {
        until += static_cast<double>(taken.nanoseconds());
        ends.push_back(static_cast<float>(sum > 0 ? whole * until / sum : whole));
      }
    }
  }
  return profile;
}

Result<Duration> GroupRunner::run_group(std::span<const OverlapPredictor::Part> parts) {
  const uint32_t width = group_width(lane_count(), static_cast<uint32_t>(parts.size()));
  const auto lanes_of = [width](uint32_t i) { return LaneInterval{i * width, width}; };
  std::vector<Action> before, group;
  for (uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i].range.begins()) continue;
    before.push_back(action({parts[i].model, parts[i].bucket, {0, parts[i].range.first}}, lanes_of(i), i));
  }
  FOLIOT_RETURN_IF_ERROR(run(before).status());
  for (uint32_t i = 0; i < parts.size(); ++i) group.push_back(action(parts[i], lanes_of(i), i));
  const TimePoint begin = monotonic_now() + kGroupLead;
  for (Action& action : group) action.earliest = begin;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes, run(group));
  TimePoint first = TimePoint::infinite_future(), last;
  for (const Outcome& outcome : outcomes) {
    first = std::min(first, outcome.start);
    last = std::max(last, outcome.end);
  }
  return last - first;
}

Result<OverlapSample> GroupRunner::measure(std::span<const OverlapPredictor::Part> parts, uint32_t repeats) {
  FOLIOT_CHECK(!parts.empty() && parts.size() <= std::min(kGroupPartsMax, lane_count()));
  std::vector<Duration> durations;
  for (uint32_t turn = 0; turn < repeats; ++turn) {
    FOLIOT_ASSIGN_OR_RETURN(const Duration taken, run_group(parts));
    durations.push_back(taken);
  }
  OverlapSample sample{{parts.begin(), parts.end()}, std::max(median(durations), Duration::nanoseconds(1))};
  sample.spread = spread_of(durations, sample.together);
  return sample;
}

}  // namespace foliot
