#include "virtual/experiments/inferline_pipelines.h"

#include <string>
#include <utility>

namespace foliot {
namespace {

constexpr double kCpuPrice = 0.05;         // m4.16xlarge: 3.20 dollars for 64
constexpr double kGpuPrice = 0.63 + 0.05;  // p2.8xlarge less a machine like it without GPUs, by 8; and a CPU

// A batch takes base_ms + rows * each_ms.
StageKind kind(std::string name, double price, double base_ms, double each_ms, uint32_t batch_most) {
  StageKind to{std::move(name), price, {}, {0}};
  for (uint32_t size = 1; size <= batch_most; size *= 2) {
    to.batch_sizes.push_back(size);
    while (to.durations_ns.size() <= size) {
      to.durations_ns.push_back(Duration::from_milliseconds(base_ms + each_ms * size).nanoseconds());
    }
  }
  return to;
}

StageKind cpu(double base_ms, double each_ms) { return kind("cpu", kCpuPrice, base_ms, each_ms, 8); }
StageKind gpu(double base_ms, double each_ms) { return kind("k80", kGpuPrice, base_ms, each_ms, 64); }

PlannedStage stage(std::string name, std::vector<uint32_t> parents, double probability, std::vector<StageKind> kinds) {
  PlannedStage to{std::move(name), parents, {}, probability, 1, std::move(kinds)};
  for (const uint32_t parent : parents) to.needs.push_back({parent});
  return to;
}

PlannedPipeline pipeline(std::string name, std::vector<PlannedStage> stages) {
  PlannedPipeline to{std::move(name), std::move(stages)};
  to.set_scale_factors();
  return to;
}

std::vector<StageKind> resnet152() { return {cpu(0, 1667), gpu(18, 19.2)}; }

}  // namespace

PlannedPipeline inferline_image() {
  return pipeline("image", {stage("preprocess", {}, 1, {cpu(0, 8)}), stage("resnet152", {0}, 1, resnet152())});
}

PlannedPipeline inferline_video() {
  return pipeline(
      "video",
      {stage("detect", {}, 1, {cpu(0, 900), gpu(22, 16)}), stage("vehicle", {0}, 0.4, {cpu(0, 160), gpu(9, 5.5)}),
       stage("person", {0}, 0.3, {cpu(0, 160), gpu(9, 5.5)}), stage("plate", {1}, 0.5, {cpu(2, 30), gpu(6, 4)})});
}

// The topic of what was translated, or needed no translation: it waits for the translator, and
// needs only the language.
PlannedPipeline inferline_social() {
  PlannedStage topic = stage("topic", {0, 1}, 1, {cpu(1, 11), gpu(5, 0.9)});
  topic.needs = {{0}};
  return pipeline("social", {stage("language", {}, 1, {cpu(1, 7), gpu(4, 0.6)}),
                             stage("translate", {0}, 0.3, {cpu(0, 700), gpu(32, 6)}), std::move(topic),
                             stage("image", {}, 1, {cpu(0, 420), gpu(11, 9)})});
}

PlannedPipeline inferline_cascade() {
  return pipeline("cascade", {stage("preprocess", {}, 1, {cpu(0, 8)}), stage("fast", {0}, 1, {cpu(3, 34), gpu(6, 2.6)}),
                              stage("slow", {1}, 0.35, resnet152())});
}

std::vector<PlannedPipeline> inferline_pipelines() {
  return {inferline_image(), inferline_video(), inferline_social(), inferline_cascade()};
}

}  // namespace foliot
