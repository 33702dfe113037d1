// TestDispatcher: for tests of what policies are made of: a Cluster, and a
// Dispatcher that accepts what the Cluster allows and remembers the last action.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_TEST_DISPATCHER_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_TEST_DISPATCHER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "control/controller/cluster.h"
#include "control/controller/policy.h"

namespace foliot {

class TestDispatcher : public Dispatcher {
 public:
  TestDispatcher(uint32_t devices, uint32_t pages_per_device, std::unique_ptr<DurationModel> durations = nullptr)
      : cluster_(durations != nullptr ? Cluster(std::move(durations)) : Cluster()) {
    cluster_.infers_outstanding_max = 32;
    cluster_.loads_outstanding_max = 64;
    for (uint32_t i = 0; i < devices; ++i) {
      cluster_.add_device(KindId(), pages_per_device);
    }
  }

  const Cluster& cluster() const { return cluster_; }
  void set_delivery(DeviceId device, Duration delivery) {
    cluster_.devices[device.value()].set_link({.delivery = delivery, .report = {}});
  }

  void measure_ways() { cluster_.timings.resize(cluster_.devices.size()); }

  // LOAD takes 8 ms; EXEC of 1, 2 and 4 rows takes 2, 3 and 5 ms.
  void set_target(ModelId model, const ModelTarget& target) { cluster_.set_target(model, target); }

  const ModelInfo& add_model(uint32_t id, uint32_t pages, uint32_t operators = 1,
                             std::optional<Duration> batch_delay = Duration()) {
    auto model = std::make_shared<ModelInfo>();
    model->id = ModelId(id);
    model->batch_delay = batch_delay;
    model->buckets.resize(1);
    model->runnables = {
        {.batch_sizes = {1, 2, 4},
         .pages = pages,
         .seed_load = Duration::milliseconds(8),
         .seed_exec = {{Duration::milliseconds(2), Duration::milliseconds(3), Duration::milliseconds(5)}}}};
    std::vector<double>& ends = model->only().operator_ends;
    for (uint32_t i = 1; i <= operators; ++i) ends.push_back(static_cast<double>(i) / operators);
    cluster_.add_model(model);
    return *model;
  }

  // EXEC of this batch size (by default of one row) takes so long on every device.
  void set_exec(ModelId model, Duration exec, uint32_t batch_index = 0, uint32_t width_index = 0) {
    for (const DeviceModel& device : cluster_.devices) {
      if (width_index >= width_count(device.lane_count())) continue;  // it has no lanes so narrow
      // Twice: a first one that is much longer than expected counts as cold.
      for (int i = 0; i < 2; ++i) {
        cluster_.durations().record_exec({device.id(), model, BucketId(0), batch_index, width_index}, exec);
      }
    }
  }

  Verdict load(DeviceId device, ModelId model, Window window) override {
    if (cluster_.placed(device, model)) return Verdict::kAlreadyPlaced;
    const uint32_t pages = cluster_.pages(device, model);
    if (pages > cluster_.device(device).free_pages()) return Verdict::kNoPages;
    if (!cluster_.may_place(device, model) || cluster_.held[model.value()] >= cluster_.target(model).copies_most) {
      return Verdict::kAgainstTargets;
    }
    if (!cluster_.may_load(device, model, now)) {
      ++backing_off;
      return Verdict::kBackingOff;
    }
    begin({.type = ActionType::kLoad, .device = device, .model = model, .earliest = window.earliest});
    at(device).sent_load(actions.back().id, model, pages, now, cluster_.durations().load(device, model), now);
    ++cluster_.held[model.value()];
    return Verdict::kAccepted;
  }
  Verdict unload(DeviceId device, ModelId model) override {
    if (cluster_.device(device).residency(model) != Residency::kLoaded) return Verdict::kNotPlaced;
    if (cluster_.device(device).infers_outstanding(model) > 0) return Verdict::kInUse;
    if (!cluster_.may_evict(model)) return Verdict::kAgainstTargets;
    --cluster_.copies[model.value()];
    send_unload(device, model);
    return Verdict::kAccepted;
  }
  // What has something to do stays, set aside.
  Verdict retire(DeviceId device, ModelId model) override {
    const Residency residency = cluster_.device(device).residency(model);
    if (residency == Residency::kAbsent) return Verdict::kNotPlaced;
    if (residency == Residency::kLoaded) --cluster_.copies[model.value()];
    at(device).put_aside(model);
    retired.push_back(device);
    const bool in_use = residency == Residency::kLoading || cluster_.device(device).infers_outstanding(model) > 0;
    if (!in_use) send_unload(device, model);
    return Verdict::kAccepted;
  }
  Verdict infer(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, LaneInterval lanes,
                std::span<const RequestId> requests, Window window) override {
    if (!cluster_.placed(device, model)) return Verdict::kNotPlaced;
    Action action{.type = ActionType::kInfer,
                  .device = device,
                  .model = model,
                  .earliest = window.earliest,
                  .latest = window.latest,
                  .bucket = bucket,
                  .batch_size = batch_size,
                  .lanes = lanes};
    for (const RequestId request : requests) action.rows.add({request, {}});
    begin(action);
    const std::span<const uint32_t> sizes = cluster_.batch_sizes(device, model);
    const auto index = static_cast<uint32_t>(std::find(sizes.begin(), sizes.end(), batch_size) - sizes.begin());
    const uint32_t width = width_index(lanes.count, cluster_.device(device).lane_count());
    at(device).contexts().sent(actions.back());
    at(device).sent_infer(actions.back().id, model, lanes, now,
                          cluster_.durations().exec({device, model, bucket, index, width}), now);
    return Verdict::kAccepted;
  }
  Verdict begin(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_size, const ExecPart& part,
                Duration expected, std::span<const RequestId> requests, Window window) override {
    if (!cluster_.placed(device, model)) return Verdict::kNotPlaced;
    if (!cluster_.device(device).contexts().may_begin(part.context, part.range)) return Verdict::kBadPart;
    Action action{.type = ActionType::kInfer,
                  .device = device,
                  .model = model,
                  .earliest = window.earliest,
                  .latest = window.latest,
                  .expected = expected,
                  .bucket = bucket,
                  .batch_size = batch_size,
                  .lanes = part.lanes,
                  .range = part.range,
                  .context = part.context,
                  .in_group = true};
    for (const RequestId request : requests) action.rows.add({request, {}});
    send_part(action);
    return Verdict::kAccepted;
  }
  Verdict resume(DeviceId device, ContextIndex context, uint32_t last, LaneInterval lanes, Duration expected,
                 Window window) override {
    const Action* unfinished = cluster_.device(device).contexts().unfinished(context);
    if (unfinished == nullptr || last <= unfinished->range.last) return Verdict::kBadPart;
    Action action = *unfinished;
    action.earliest = window.earliest;
    action.latest = window.latest;
    action.expected = expected;
    action.lanes = lanes;
    action.range = {unfinished->range.last, last};
    send_part(action);
    return Verdict::kAccepted;
  }
  Verdict abandon(DeviceId device, ContextIndex context, Refusal /*reason*/, TimePoint /*earliest*/) override {
    const Action* unfinished = cluster_.device(device).contexts().unfinished(context);
    if (unfinished == nullptr) return Verdict::kBadPart;
    for (const BatchRows::Row& row : unfinished->rows) refused.push_back(row.request);
    at(device).abandon(context);
    return Verdict::kAccepted;
  }
  Verdict refuse(RequestId request, Refusal /*reason*/, TimePoint /*earliest_completion*/) override {
    refused.push_back(request);
    return Verdict::kAccepted;
  }

  void finish(const Action& action) {
    if (action.type == ActionType::kLoad) {
      at(action.device).load_over(action.id, action.model, cluster_.pages(action.device, action.model), true, now);
      ++cluster_.copies[action.model.value()];
    } else if (action.type == ActionType::kInfer) {
      const bool unfinished = at(action.device).contexts().over(action, true, now, action.expected);
      at(action.device).infer_over(action.id, action.model, now, unfinished);
    }
  }
  // The last action is over; returns it.
  const Action& finish() {
    finish(actions.back());
    return actions.back();
  }
  // The action, a LOAD, failed.
  void fail_load(const Action& action) {
    at(action.device).load_over(action.id, action.model, cluster_.pages(action.device, action.model), false, now);
    --cluster_.held[action.model.value()];
    cluster_.load_back_off.on_failure(action.device, action.model, now);
  }
  void set_state(DeviceId device, DeviceState state) { at(device).set_state(state); }
  // The device is lost; returns its pages, with which it may join again.
  uint32_t lose(DeviceId device) {
    DeviceModel& facts = at(device);
    const uint32_t pages = facts.pages_total();
    for (const ModelId model : facts.loaded()) --cluster_.copies[model.value()];
    for (const ModelId model : facts.held()) --cluster_.held[model.value()];
    facts.lose();
    return pages;
  }
  void join(DeviceId device, uint32_t pages) {
    DeviceModel& facts = at(device);
    facts.join(pages, facts.lane_count(), {}, 0, now, facts.contexts().count());
  }
  // The device has so many lanes and contexts now. REQUIRES: it holds nothing and nothing was
  // measured.
  void set_lane_count(DeviceId device, uint32_t lane_count, uint32_t context_count = 1) {
    DeviceModel& facts = at(device);
    const uint32_t pages = facts.pages_total();
    facts.lose();
    facts.join(pages, lane_count, {}, 0, now, context_count);
    cluster_.durations().set_lane_count(device, lane_count);
  }
  std::vector<DeviceId> take_ended_back_offs() { return cluster_.load_back_off.take_ended(now); }
  // The worker refused the last action, an UNLOAD; returns it.
  const Action& refuse_unload() {
    const Action& action = actions.back();
    at(action.device).unload_refused(action.model, cluster_.pages(action.device, action.model));
    ++cluster_.copies[action.model.value()];
    ++cluster_.held[action.model.value()];
    return action;
  }

  // The model is given something to do at `when`; use(): and has done it.
  void begin_use(DeviceId device, ModelId model, TimePoint when) {
    at(device).sent_infer(ActionId(next_), model, {}, when, Duration(), when);
  }
  void use(DeviceId device, ModelId model, TimePoint when) {
    begin_use(device, model, when);
    at(device).infer_over(ActionId(next_++), model, when);
  }

  TimePoint now;
  std::vector<Action> actions;
  std::vector<RequestId> refused;
  std::vector<DeviceId> retired;
  uint32_t backing_off = 0;  // LOADs that were turned down for this

 private:
  DeviceModel& at(DeviceId device) { return cluster_.devices[device.value()]; }
  void send_unload(DeviceId device, ModelId model) {
    begin({.type = ActionType::kUnload, .device = device, .model = model});
    at(device).sent_unload(model, cluster_.pages(device, model));
    --cluster_.held[model.value()];
  }
  void send_part(const Action& action) {
    begin(action);
    at(action.device).contexts().sent(actions.back());
    at(action.device)
        .sent_infer(actions.back().id, action.model, action.lanes, action.earliest, action.expected, now,
                    !action.range.begins());
  }
  void begin(Action action) {
    action.id = ActionId(next_++);
    actions.push_back(action);
  }

  Cluster cluster_;
  uint64_t next_ = 1;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_TEST_DISPATCHER_H_
