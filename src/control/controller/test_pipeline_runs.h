// PipelineRunsTest: runs of a pipeline under test, whose visits the test serves and refuses.
#ifndef FOLIOT_CONTROL_CONTROLLER_TEST_PIPELINE_RUNS_H_
#define FOLIOT_CONTROL_CONTROLLER_TEST_PIPELINE_RUNS_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/controller/pipeline_runs.h"
#include "foundation/base/test_time.h"
#include "foundation/core/stage_visit.h"

namespace foliot {

inline const Duration kStage = ms(10);  // one EXEC of each model

// A pipeline of stages of which each has a model of its own, and what becomes of its visits.
class PipelineRunsTest : public testing::Test, private PipelineRuns::Owner, private VisitOutputs {
 protected:
  PipelineRunsTest() {
    cluster_.add_device(cluster_.intern_kind(kDefaultKind), 100);
    cluster_.timings.emplace_back();
  }

  static TensorSource of_call() { return {}; }
  static TensorSource of(uint32_t stage) { return {.stage = stage}; }

  // Appends a stage; each list is one input's sources.
  uint32_t add_stage(const std::string& name, std::vector<std::vector<TensorSource>> inputs,
                     std::vector<PipelineStage::Requirement> requires_all = {}, Duration exec = kStage) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(static_cast<uint32_t>(info_.stages.size()));
    model->name = name;
    model->buckets = {{}};
    model->only().seed_exec = {{exec}};
    cluster_.add_model(model);
    cluster_.copies[model->id.value()] = 1;
    info_.stages.push_back({.name = name,
                            .model = model,
                            .bucket = BucketId(0),
                            .inputs = std::move(inputs),
                            .conditions = {},
                            .requires_all = std::move(requires_all)});
    return model->id.value();
  }
  void serve() {
    info_.id = PipelineId(1);
    runs_.add(std::make_shared<PipelineInfo>(info_));
  }
  RequestId begin(Duration slo = Duration::seconds(1)) {
    const Request request{.id = RequestId(next_),
                          .model = {},
                          .pipeline = PipelineId(1),
                          .bucket = {},
                          .payload = PayloadHandle(uint64_t{7} << 32 | next_),
                          .arrival = now_,
                          .deadline = now_ + slo,
                          .reserve = ms(1)};
    ++next_;
    runs_.begin(request, now_);
    return request.id;
  }
  // Its EXEC began at once, but for `wait`.
  Completion end_of(RequestId run, uint32_t stage, Duration wait = {}) const {
    return {
        .id = visit_of(run, stage), .detail = {}, .arrival = now_, .exec_start = now_ + wait, .exec_duration = kStage};
  }
  void serve_visit(RequestId run, uint32_t stage, ConditionSet conditions = 0, Duration wait = {}) {
    ASSERT_TRUE(waiting_.erase(visit_of(run, stage)) == 1) << "stage " << stage << " is not under way";
    Completion completion = end_of(run, stage, wait);
    completion.conditions = conditions;
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  void refuse_visit(RequestId run, uint32_t stage, Refusal reason, const std::string& detail = {}) {
    ASSERT_TRUE(waiting_.erase(visit_of(run, stage)) == 1);
    Completion completion = end_of(run, stage);
    completion.refusal = reason;
    completion.detail = detail;
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  // Outputs of 64 bytes are held where they were computed; there is room for so many of them.
  void hold(uint64_t payloads_max) {
    for (PipelineStage& stage : info_.stages) {
      auto model = std::make_shared<ModelInfo>(*stage.model);
      if (model->outputs.empty()) model->outputs = {{"y", DataType::kUint8, {64}, {""}}};
      stage.model = model;
    }
    runs_.hold_outputs(*this);
    runs_.set_room({payloads_max * 64, payloads_max});
  }
  // By the device with this number.
  void compute_visit(RequestId run, uint32_t stage, uint32_t device, Refusal refusal = Refusal::kNone) {
    ASSERT_EQ(waiting_.erase(visit_of(run, stage)), 1u);
    Completion completion = end_of(run, stage);
    completion.refusal = refusal;
    completion.action = ActionId(100 + stage);
    completion.device = DeviceId(device);
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  // Which were discarded since, "0@2": of stage 0, by device 2.
  std::string discarded() {
    std::string all;
    for (const auto& [visit, holder] : discarded_) {
      all += fmt::format("{}{}@{}", all.empty() ? "" : " ", *visit_slot(visit), holder.value());
    }
    discarded_.clear();
    return all;
  }
  // "detect" counts up to four elements, "classify" is visited for each, "last" takes what all of its
  // visits made: slots 0, 1 to 4, and 5.
  void add_detector(std::vector<uint32_t> sizes = {1}, std::vector<Duration> execs = {kStage}) {
    add_stage("detect", {{of_call()}});
    TensorSource element = of(0);
    element.each = true;
    add_stage("classify", {{element}});
    add_stage("last", {{of(1)}});
    info_.stages[0].count = {.output = 0, .at_most = 4};
    info_.stages[1].for_each = {.stage = 0, .at_most = 4};
    auto counting = std::make_shared<ModelInfo>(*info_.stages[0].model);
    counting->outputs = {{"count", DataType::kFloat32, {}, {}}};
    info_.stages[0].model = counting;
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(3);
    model->name = "classifier";
    model->buckets = {{}};
    model->only().batch_sizes = std::move(sizes);
    model->only().seed_exec = {std::move(execs)};
    cluster_.add_model(model);
    cluster_.copies[3] = 1;
    info_.stages[1].model = model;
  }
  void count_visit(RequestId run, uint32_t slot, float count) {
    ASSERT_EQ(waiting_.erase(visit_of(run, slot)), 1u);
    Completion completion = end_of(run, slot);
    completion.count = count;
    runs_.visit_over(completion);
    runs_.advance(now_);
  }
  // A whole run with so many elements.
  void serve_detector(uint32_t elements) {
    const RequestId run = begin();
    count_visit(run, 0, static_cast<float>(elements));
    for (uint32_t slot = 1; slot <= elements; ++slot) serve_visit(run, slot);
    serve_visit(run, 5);
    EXPECT_TRUE(was_served(run));
  }
  bool was_served(RequestId run) const { return ended_.contains(run) && ended_.at(run).served(); }
  // The stages that are under way, "0 2".
  std::string under_way(RequestId run) const {
    std::string stages;
    for (const auto& [id, request] : waiting_) {
      if (run_of(id) == run) stages += (stages.empty() ? "" : " ") + std::to_string(*visit_slot(id));
    }
    return stages;
  }

  TimePoint now_ = at(1000);
  Cluster cluster_;
  PipelineInfo info_;
  PipelineRuns runs_{cluster_, *this};
  std::map<RequestId, Request> waiting_;
  std::vector<RequestId> running_;  // cannot be cancelled
  std::map<RequestId, Completion> ended_;

 private:
  void discard(RequestId visit, DeviceId holder) override { discarded_.emplace_back(visit, holder); }
  void submit_visit(const Request& visit, TimePoint /*now*/) override {
    EXPECT_TRUE(runs_.is_visit(visit.id));
    EXPECT_TRUE(waiting_.emplace(visit.id, visit).second) << "submitted twice";
  }
  void cancel_visit(RequestId visit, Refusal reason, TimePoint /*now*/) override {
    if (std::ranges::count(running_, visit) > 0 || waiting_.erase(visit) == 0) return;
    Completion completion{.id = visit, .detail = {}};
    completion.refusal = reason;
    runs_.visit_over(completion);
  }
  void run_over(const Completion& completion, TimePoint /*now*/) override {
    EXPECT_TRUE(ended_.emplace(completion.id, completion).second) << "ended twice";
  }

  uint32_t next_ = 1;
  std::vector<std::pair<RequestId, DeviceId>> discarded_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_TEST_PIPELINE_RUNS_H_
