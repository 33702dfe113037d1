#include "virtual/experiments/overlap_run.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "control/controller/rolling_duration_model.h"

namespace foliot {
namespace {

constexpr uint32_t kGpuContexts = 8;  // of this group and of the next
// What is left of the spread of durations when the group is known (section 5.2).
constexpr double kGpuDeviation = 0.02;

}  // namespace

VirtualClusterOptions OverlapRun::cluster_options(const OverlapRunOptions& options) {
  VirtualClusterOptions cluster{.seed = options.seed + 1,
                                .devices = options.devices,
                                .lanes = {.count = options.lanes, .parallel_share = 0},
                                .contexts = options.lanes == 1 ? 1 : kGpuContexts,
                                .noise = {.exec_deviation = kGpuDeviation}};
  auto resources = std::make_shared<ResourceTable>();
  for (const GpuModel& model : options.models) resources->push_back(model.shares);
  cluster.resources = std::move(resources);
  cluster.controller.make_durations = [predictor = options.predictor] {
    return std::make_unique<RollingDurationModel>(predictor);
  };
  return cluster;
}

OverlapRun::OverlapRun(OverlapRunOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      cluster_(loop_, cluster_options(options_), options_.make_policy,
               [this](const Completion& completion) { on_completion(completion); }) {
  for (uint32_t id = 0; id < options_.models.size(); ++id) cluster_.add_model(options_.models[id].info(ModelId(id)));
}

OverlapRun::Result OverlapRun::run() {
  // Loads them everywhere, as far as the policy does.
  for (uint32_t device = 0; device < options_.devices; ++device) {
    for (const uint32_t id : options_.deployed) submit(id, 0, TimePoint::infinite_future());
  }
  loop_.run_until(loop_.now() + Duration::seconds(1));
  begin_ = loop_.now();
  end_ = begin_ + options_.duration;
  if (options_.trace != nullptr) {
    replay_ = options_.trace->replay(Random(options_.seed));
    replay();
  } else {
    arrive();
  }
  loop_.run_until(end_ + Duration::seconds(2));
  cluster_.checker().check_finished();
  FOLIOT_CHECK(cluster_.controller().proposals_rejected() == 0);
  std::ranges::sort(latencies_);
  if (!latencies_.empty()) {
    result_.p99 = latencies_[latencies_.size() * 99 / 100];
    result_.mean = std::accumulate(latencies_.begin(), latencies_.end(), 0.0) / static_cast<double>(latencies_.size());
  }
  return result_;
}

void OverlapRun::submit(uint32_t model, uint16_t bucket, TimePoint deadline) {
  ++sent_;
  cluster_.submit({.id = RequestId(sent_),
                   .model = ModelId(model),
                   .bucket = BucketId(bucket),
                   .payload = PayloadHandle(sent_),
                   .arrival = loop_.now(),
                   .deadline = deadline});
}

void OverlapRun::ask(uint32_t model) {
  ++result_.queries;
  submit(model, static_cast<uint16_t>(random_.below(kGpuBuckets)), loop_.now() + qos(model));
}

void OverlapRun::arrive() {
  if (loop_.now() >= end_) return;
  ask(options_.deployed[random_.below(options_.deployed.size())]);
  loop_.at(loop_.now() + Duration::from_seconds(random_.exponential() / options_.rate), [this] { arrive(); });
}

void OverlapRun::replay() {
  const std::optional<Invocation> next = replay_->next();
  if (!next || begin_ + next->at >= end_) return;
  loop_.at(begin_ + next->at, [this, function = next->function] {
    ask(options_.deployed[function % options_.deployed.size()]);
    replay();
  });
}

void OverlapRun::on_completion(const Completion& completion) {
  if (completion.deadline.is_infinite() || !completion.served()) return;
  ++result_.in_time;
  latencies_.push_back((completion.finished - completion.arrival).to_seconds() /
                       qos(completion.model.value()).to_seconds());
}

}  // namespace foliot
