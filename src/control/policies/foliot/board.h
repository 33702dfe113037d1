// Board: the shared state of this policy's two planners: for every model its queued
// requests, the devices that hold it and its rate; for every device its models.
#ifndef FOLIOT_CONTROL_POLICIES_FOLIOT_BOARD_H_
#define FOLIOT_CONTROL_POLICIES_FOLIOT_BOARD_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "control/controller/cluster.h"
#include "control/policies/common/request_queue.h"
#include "control/policies/foliot/arrival_period.h"
#include "control/policies/foliot/arrival_rate.h"
#include "control/policies/foliot/device_shares.h"
#include "control/policies/foliot/exec_demand.h"
#include "foundation/base/bit_set.h"
#include "foundation/base/time.h"

namespace foliot::foliot_policy {

// In whole lines of the processor's caches: of thousands of models, each request finds
// that of its own in none of them.
struct alignas(64) ModelState {
  std::vector<RequestQueue> queues;  // by bucket
  BitSet holders;                    // devices that hold it, loaded
  uint32_t queued = 0;
  uint32_t loading = 0;  // devices that are loading it
  // When its first request is looked at, to be refused if there is no time left.
  TimePoint expiry = TimePoint::infinite_future();
  double weight = 1;
  Duration slo = Duration::max();  // of the last request that had a deadline
  ArrivalRate rate;
  bool served = true;    // false once it is removed, though a device may hold it still
  bool touched = false;  // has changed since the last decision
};
static_assert(sizeof(ModelState) <= 192);

// Lanes of some width, and when they are free.
struct LaneStart {
  uint32_t width_index;
  TimePoint start;
};

class Board {
 public:
  // `lookahead_min`: how far ahead devices are committed, or as much more as is measured.
  explicit Board(const Cluster& cluster, Duration lookahead_min = Duration())
      : cluster_(cluster), lookahead_min_(lookahead_min) {}

  const Cluster& cluster() const { return cluster_; }
  Duration lookahead(DeviceId device) const { return std::max(lookahead_min_, cluster_.lookahead(device)); }
  ModelState& model(ModelId id) { return models_[id.value()]; }
  const ModelState& model(ModelId id) const { return models_[id.value()]; }
  // When the next request of the model is expected, where its requests are periodic.
  std::optional<ArrivalPeriod::Prediction> next_arrival(ModelId id, TimePoint now) const {
    return periods_[id.value()].next(now);
  }
  // True if the model asks for less of its devices' time than its weighted share.
  bool modest(ModelId model) const { return shares_.modest(model); }
  // True if the model asks for half of its share at most, and memory holds it.
  bool keeps_share(ModelId model) const { return shares_.keeps_share(model); }
  // ModelInfo's.
  const std::optional<Duration>& batch_delay(ModelId id) const { return batch_delays_[id.value()]; }
  // Models with queued requests.
  const BitSet& waiting() const { return waiting_; }
  // Models that no device holds or is loading.
  const BitSet& absent() const { return absent_; }
  // Models whose requests may be late for an EXEC that they find running.
  const BitSet& tight() const { return tight_; }
  bool best_effort_waits() const { return best_effort_ > 0; }
  // Whether EXECs may take fewer lanes of the device than all (lane_division.h); false at first.
  bool divides(DeviceId device) const { return divided_.contains(device.value()); }
  void set_divides(DeviceId device, bool divides);
  const BitSet& loaded(DeviceId device) const {
    static const BitSet none;
    return device.value() < loaded_.size() ? loaded_[device.value()] : none;
  }

  void on_model_added(const ModelInfo& model);
  void on_model_removed(ModelId model);
  // A device holds other models than it did. Returns those and what it held before,
  // ascending.
  std::vector<ModelId> on_device_changed(DeviceId device);
  void load_sent(ModelId model);
  void load_over(DeviceId device, ModelId model);
  // An EXEC is over, and may have changed what is expected of the next.
  void exec_over(DeviceId device, ModelId model, uint32_t width);
  // Whether the model ever ran on so many lanes of a device. REQUIRES: a power of two, or all.
  bool has_run(ModelId model, uint32_t width) const { return (widths_run_[model.value()] & width_bit(width)) != 0; }
  // How long an EXEC is expected to take on lanes of this width. Where the model never ran on it, a good
  // division is assumed, so that it will be tried.
  Duration lane_exec(const ExecShape& shape) const;
  // An EXEC of a device with several lanes was sent.
  void exec_sent(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index, uint32_t rows, TimePoint now);
  // EXECs per second that such a device would have to run to keep up.
  double exec_demand(DeviceId device, TimePoint now) const {
    return device.value() < exec_demands_.size() ? exec_demands_[device.value()].at(now) : 0;
  }
  // How long one of them takes on lanes of this width; zero if it is not known.
  ExecDemand::Exec demanded_exec(DeviceId device, uint32_t width_index) const {
    return device.value() < exec_demands_.size() ? exec_demands_[device.value()].exec(width_index) : ExecDemand::Exec();
  }
  // An UNLOAD is over.
  void unload_over(DeviceId device, ModelId model) { set_loaded(device, model, holds(device, model)); }
  void set_loaded(DeviceId device, ModelId model, bool loaded);
  // A request has come, whether or not it is queued.
  void note_arrival(const Request& request, TimePoint now);
  // Whether a request of the same queue that is due no later waits already, and has not expired.
  bool waits_behind_another(const Request& request, TimePoint now) const {
    const ModelState& state = model(request.model);
    const Head& head = heads_[request.model.value()];
    return state.queues.size() == 1 && head.rows > 0 && head.first_deadline <= request.deadline &&
           now <= state.expiry && !state.expiry.is_infinite();
  }
  void add(const Request& request);
  void remove(const Request& request);
  // Removes `count` requests of a queue from `position` on.
  void erase(ModelId model, BucketId bucket, size_t position, size_t count);

  // EXEC of a batch and the way of the answer to the client.
  Duration answer_time(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index) const {
    return cluster_.durations().exec({device, model, bucket, batch_index}) + cluster_.margin(device);
  }
  // The part of the device's time that a batch takes on as few lanes as it runs well on.
  Duration least_share(DeviceId device, ModelId model, BucketId bucket, uint32_t batch_index) const;
  // EXEC of what is queued for the model and due until `deadline` (control/controller/exec_of_rows.h); on
  // lanes least_share() of each batch.
  Duration work(DeviceId device, ModelId model, TimePoint deadline) const;
  // The least that any device that holds the model has before it and is due until
  // `deadline`; of many holders some are looked at. REQUIRES: it has one.
  Duration least_backlog(ModelId model, TimePoint deadline, TimePoint now) const;
  // What the device has before it: what was sent, and its share of what waits with
  // a deadline. Asked for again while nothing of that has changed, it costs little.
  Duration backlog(DeviceId device, TimePoint now) const;
  // The same of what is due until `deadline`.
  Duration backlog_until(DeviceId device, TimePoint deadline, TimePoint now) const;
  // Whether so many requests of the model come that its densest batches are full whichever of them are refused.
  bool fills_batches(ModelId model) const { return expected_[model.value()].fills; }
  // The same of so many requests that wait.
  bool full_batch_waits(DeviceId device, ModelId model, size_t rows) const;
  // Weighted requests that a second of EXEC serves, in the batches that the model is expected to fill.
  double density(ModelId model) const { return expected_[model.value()].density; }
  // The index, of the sizes that a device has, of the one that serves the model's rows fastest, in as many as its
  // batches are expected to grow to.
  uint32_t expected_size(ModelId model, std::span<const uint32_t> sizes) const {
    // It was found for one device, and one of another kind may have fewer sizes.
    return std::min(expected_[model.value()].grown_index, static_cast<uint32_t>(sizes.size() - 1));
  }
  // EXEC of so many rows of a queue, where the last batch grows as far as it is expected to: a row that joins it takes
  // no more.
  Duration grown_work(DeviceId device, ModelId model, BucketId bucket, size_t rows) const;
  // Counts changes of what waits, and of where it could run.
  uint64_t changes() const { return changes_; }
  // The models that the device holds and that have queued requests, ascending; of more than
  // `count_max` with a deadline, half are those of which a request is due first, and half
  // those that most requests wait for. Returns how many requests with a deadline wait for
  // all of them, for each that waits for those that were visited.
  // `on`: of a device with several lanes, requests that this interval cannot answer in time do not count.
  template <typename Visit>
  double for_each_candidate(DeviceId device, uint32_t count_max, const LaneStart& on, Visit visit) const {
    if (waiting_.size() <= count_max || loaded(device).size() <= count_max) {
      waiting_.for_each_common(loaded(device), [&](uint32_t model) { visit(ModelId(model)); });
      return 1;
    }
    const double rows = find_candidates(device, count_max, on);
    prefetch_candidates(device);
    for (const Head& head : candidates_) visit(head.model);
    return rows;
  }

 private:
  static uint8_t width_bit(uint32_t width) { return static_cast<uint8_t>(1u << (std::bit_width(width) - 1)); }
  // The device's share of what waits for one model with a deadline.
  struct ModelWork {
    ModelId model;
    Duration time;
    TimePoint first_deadline;
    TimePoint last_deadline;

    // What is due until `deadline`, were all deadlines spread evenly from the first to the
    // last. REQUIRES: it is one of those between them.
    Duration part_until(TimePoint deadline) const {
      const Duration all = last_deadline - first_deadline;
      return time.scaled((deadline - first_deadline).to_seconds() / all.to_seconds());
    }
  };
  // What waits with a deadline for the models of one device, but for those that are wide, and
  // for what has changed since it was looked at.
  struct DeviceWork {
    Duration time;                  // the sum
    std::vector<ModelWork> models;  // ascending
    std::vector<ModelId> changed;   // to be looked at again
    uint64_t revision = 0;          // of the estimates
    TimePoint looked_at;
  };

  // As it is now; but where much changes, as it was up to some milliseconds ago.
  const DeviceWork& waiting_work(DeviceId device, TimePoint now) const;
  // As it is now. What waits for models that many devices hold, spread over all devices: it
  // is not looked at for each of them.
  Duration wide_work() const;
  bool wide(ModelId model) const;
  // What waits for a model with a deadline, in few bytes: of thousands of models those of one
  // device are compared where each ModelState would have to come from memory.
  struct Head {
    TimePoint first_deadline;
    ModelId model;
    uint32_t rows = 0;
  };
  // Into candidates_.
  double find_candidates(DeviceId device, uint32_t count_max, const LaneStart& on) const;
  // Begins to bring what a choice of batches reads of each of them into the processor's caches: all at
  // once takes little longer than one after the other takes for one.
  void prefetch_candidates(DeviceId device) const;
  // What of the model's requests an EXEC of one row in each of its queues can answer in time.
  Head head_in_time(DeviceId device, ModelId model, const LaneStart& on) const;
  // Requests have come to the model or gone.
  void update_head(ModelId model);
  void look_at_all(DeviceId device, DeviceWork& known) const;
  void look_again(DeviceId device, ModelId model, DeviceWork& known) const;
  // nullopt if the device does not hold the model, or nothing with a deadline waits.
  std::optional<ModelWork> model_work(DeviceId device, ModelId model) const;
  Duration share(DeviceId device, ModelId model, TimePoint deadline) const;
  // Of so many rows of one queue, in batches as they are.
  Duration work_of_rows(DeviceId device, ModelId model, BucketId bucket, uint32_t rows) const;
  // What waits for the model, or where it is loaded, is about to change or has.
  void work_changed(ModelId model);
  void work_changed(DeviceId device, ModelId model);

  bool holds(DeviceId device, ModelId model) const {
    return cluster_.device(device).residency(model) == Residency::kLoaded;
  }
  // What so many rows take as part of the largest batch that is filled and run within the model's SLO at
  // the rate of its requests; at least of the shape's own size.
  Duration grown_exec(const ExecShape& shape, uint32_t rows, TimePoint now) const;
  // One of the devices with several lanes that hold the model, in turn.
  void note_demand(const ModelState& state, TimePoint now);
  void note_slo(ModelId model, Duration slo);
  // How fast requests of the model come, and in how many rows its batches are expected to begin if it has one bucket.
  void expect_rows(ModelId model, TimePoint now);
  void expect_rate(ModelId model, TimePoint now);
  void expect_growth(ModelId model, DeviceId device, TimePoint now);
  uint32_t densest_size(ModelId model, DeviceId device, Duration slo) const;
  // `before`: they were.
  bool expect_full(ModelId model, DeviceId device, bool before, TimePoint now) const;
  // What the request asks for of its devices.
  void note_share(const Request& request, TimePoint now);
  Duration& longest_exec(KindId kind);
  void queue_shrank(ModelId model, const RequestQueue& queue, size_t size_before, size_t best_effort_before);
  void placement_changed(ModelId model);

  const Cluster& cluster_;
  const Duration lookahead_min_;
  std::vector<ModelState> models_;
  std::vector<ArrivalPeriod> periods_;                 // by model
  std::vector<std::optional<Duration>> batch_delays_;  // by model
  std::vector<ExecDemand> exec_demands_;               // by device; up to the last one that ran on lanes
  // A batch that is filled at the rate of the model's requests within their SLO.
  struct Expected {
    uint32_t rows = 1;
    uint32_t batch_index = 0;
    double grown_rows = 1;     // on average, between the sizes
    uint32_t grown_index = 0;  // of the size that serves them fastest
    bool fills = false;
    uint32_t arrivals = 0;  // since it was looked at
    double rate = 0;        // of the last tenths of a second: it follows the beginning of an overload
    double dispersion = 1;  // of numbers of arrivals; 1 of a Poisson process
    TimePoint looked_at;
    double density = 0;
    TimePoint until;
  };
  std::vector<Expected> expected_;  // by model
  uint32_t expect_cursor_ = 0;
  DeviceShares shares_;
  std::vector<uint8_t> widths_run_;  // by model; width_bit() of each
  std::vector<BitSet> loaded_;       // by device
  BitSet waiting_;
  BitSet absent_;
  BitSet tight_;
  BitSet divided_;                       // devices
  std::vector<Duration> longest_execs_;  // by kind of device: of any model
  uint64_t changes_ = 0;
  uint64_t arrivals_ = 0;     // counted by note_demand()
  uint64_t best_effort_ = 0;  // requests without a deadline that are queued
  mutable BitSet known_;      // devices whose work_ is followed
  mutable std::vector<DeviceWork> work_;
  // Of wide models.
  mutable Duration wide_work_;                // the sum
  mutable std::vector<Duration> wide_works_;  // by model
  mutable std::vector<ModelId> wide_changed_;
  mutable BitSet is_wide_changed_;
  std::vector<Head> heads_;  // by model
  mutable std::vector<Head> candidates_;
};

}  // namespace foliot::foliot_policy

#endif  // FOLIOT_CONTROL_POLICIES_FOLIOT_BOARD_H_
