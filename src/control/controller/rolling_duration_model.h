// RollingDurationModel: the expected duration of a LOAD or an EXEC, from the last
// durations measured for the same (device, model, bucket, batch size, width) (Clockwork,
// section 5.3: "action profiles").
//
// The estimate is a high quantile of the last kWindow durations, without those that stand alone: user
// code that collects garbage now and then is not slow, and what comes unexpected is in the deadline margin
// (device_timing.h) already. Before the first one it is the seed profile made at compile time. That is of
// all lanes. On a width that was
// not measured a batch takes as long as on the next wider one, times what that step cost other
// models of the same devices (width_scaling.h), and no longer than was measured on fewer lanes.
//
// Doubted often enough, an estimate lets a request pass that shows what is true. What has
// lately been measured on any device is doubted less: mostly it is true, and the request
// came too late for other reasons.
//
// So that no slow run is expected again and again, a batch is never expected to take
// much longer than the next smaller size would for as many rows: after one slow run of a
// large size, that size would not be used again. And a size that has not run for long is expected to
// take no longer than the one that ran last lets expect by the seed profile: a device that was slow for a
// while would go on with small batches, which is where user code that takes as long for one row as for
// many loses most.
#ifndef FOLIOT_CONTROL_CONTROLLER_ROLLING_DURATION_MODEL_H_
#define FOLIOT_CONTROL_CONTROLLER_ROLLING_DURATION_MODEL_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "control/controller/duration_model.h"
#include "control/controller/overlap_predictor.h"
#include "control/controller/width_scaling.h"
#include "foundation/base/flat_map.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "foundation/core/lanes.h"
#include "foundation/core/model_info.h"

namespace foliot {

// The last measured durations of one thing. The estimate is their largest: of
// ten values, that is what a p99 is. One of each kAloneAmong does not count, where no smaller one comes near it; nor do
// as many as are usual, where durations were often out of line before: they are no change (unlikely_count.h).
// How often is known of all sizes together, since some run rarely.
class RollingProfile {
 public:
  static constexpr uint32_t kWindow = 10;
  explicit RollingProfile(Duration seed = Duration()) : estimate_(seed) {}

  // How often durations are out of line, of all profiles that share it.
  struct Outliers {
    float share = 0;  // of what has left the windows
    // So many of the last durations that stand alone are no change.
    uint32_t usual() const;
  };

  // True if the estimate has changed. `turn`: by which turn() shows later how long ago this was.
  bool record(Duration measured, Outliers& outliers, uint32_t turn = 0);
  // Takes a quarter off the estimate, or as much as leaves `floor`, and forgets the durations.
  void doubt(Duration floor);
  Duration estimate() const { return estimate_; }
  // Whether anything was ever recorded.
  bool measured() const { return measured_; }
  // Whether more was recorded than may by chance be out of line.
  bool trusted(const Outliers& outliers) const { return count_ > outliers.usual(); }
  // Of the last record.
  uint32_t turn() const { return turn_; }

 private:
  static constexpr uint32_t kAloneAmong = kWindow / 2;

  Duration estimate_;
  uint32_t turn_ = 0;
  uint8_t count_ = 0;
  uint8_t next_ = 0;
  bool measured_ = false;
  std::array<Duration, kWindow> last_;
};

class RollingDurationModel final : public DurationModel {
 public:
  // `overlap`: what is expected of groups; null: that they gain nothing.
  explicit RollingDurationModel(std::shared_ptr<const OverlapPredictor> overlap = nullptr)
      : overlap_(std::move(overlap)) {}
  RollingDurationModel(const RollingDurationModel&) = delete;
  RollingDurationModel& operator=(const RollingDurationModel&) = delete;

  void add_device(KindId kind) override;
  void set_lane_count(DeviceId device, uint32_t lane_count) override;
  void forget_device(DeviceId device) override;
  void add_model(const ModelInfo& model, std::span<const KindId> kinds) override;
  void extend_model(const ModelInfo& model, std::span<const KindId> kinds) override;
  Duration load(DeviceId device, ModelId model) const override {
    const Place* own = find_own(device, model);
    return (own != nullptr ? own->estimates : seeds(device, model).estimates.data())[0];
  }
  Duration exec(const ExecShape& shape) const override {
    return execs(shape.device, shape.model, shape.bucket, shape.width_index)[shape.batch_index];
  }
  std::span<const Duration> execs(DeviceId device, ModelId model, BucketId bucket,
                                  uint32_t width_index) const override {
    if (const Place* own = find_own(device, model)) {
      return {own->estimates + 1 + (width_index * own->buckets + bucket.value()) * own->sizes, own->sizes};
    }
    const ModelProfiles& unmeasured = seeds(device, model);
    return {unmeasured.estimates.data() + 1 + unmeasured.position(width_index, bucket), unmeasured.sizes.size()};
  }
  void prefetch(DeviceId device, ModelId model) const override { places_[device.value()].prefetch(model); }
  void together(std::span<const std::span<const ExecSegment>> groups, std::span<Duration> durations) const override {
    const bool knows_lanes = overlap_ != nullptr && !groups.empty() && !groups[0].empty() &&
                             lanes(groups[0][0].shape.device) == overlap_->lane_count();
    knows_lanes ? overlap_->predict(groups, overlapping_, durations) : DurationModel::together(groups, durations);
  }
  uint64_t revision() const override { return revision_; }
  // Neither term ever falls.
  uint64_t revision(ModelId model) const override { return revision_ + doubts_[model.value()]; }
  void record_load(DeviceId device, ModelId model, Duration measured) override;
  void record_exec(const ExecShape& shape, Duration measured) override;
  // Counts once in half a second.
  void doubt(ModelId model, BucketId bucket, TimePoint now) override;

 private:
  // Devices of which the same is expected before they are measured.
  struct Group {
    KindId kind;
    uint32_t lanes = 1;
    WidthScaling scaling{lanes};
  };
  struct ModelProfiles {
    RollingProfile load;
    std::vector<uint32_t> sizes;
    uint32_t buckets = 0;
    std::vector<RollingProfile> exec;  // [(width_index * buckets + bucket) * sizes.size() + batch_index]
    // Of LOAD, and then of `exec`: each of these within reach of its smaller size, and, if it
    // was not measured, of its wider width.
    std::vector<Duration> estimates;
    std::vector<Duration> seed_exec;                 // [bucket * sizes.size() + batch_index], on all lanes
    std::vector<uint32_t> turns;                     // [width_index * buckets + bucket]: EXECs that were measured
    std::vector<RollingProfile::Outliers> outliers;  // likewise
    // In `exec`, of the smallest size.
    size_t position(uint32_t width_index, BucketId bucket) const {
      return (size_t{width_index} * buckets + bucket.value()) * sizes.size();
    }
    uint32_t& turn(uint32_t width_index, BucketId bucket) {
      return turns[size_t{width_index} * buckets + bucket.value()];
    }
    // How many EXECs of the same width and bucket were measured since this one's last.
    uint32_t turns_since(uint32_t width_index, BucketId bucket, const RollingProfile& profile) const {
      return turns[size_t{width_index} * buckets + bucket.value()] - profile.turn();
    }
    uint32_t widths() const { return static_cast<uint32_t>(exec.size() / (buckets * sizes.size())); }
    void update_estimates(BucketId bucket, const Group& group);
    void update_all_estimates(const Group& group);
    // Of the sizes that were measured on this width, and are trusted, the one that ran last.
    std::optional<uint32_t> last_run(uint32_t width_index, BucketId bucket) const;
    // What `last` lets expect of another size, if that has not run for long or is not trusted; otherwise
    // Duration::max().
    Duration expected_by(uint32_t last, uint32_t width_index, BucketId bucket, uint32_t batch_index) const;
    // Expected of a batch by its own width, or by others that were measured.
    Duration expected(uint32_t width_index, BucketId bucket, uint32_t batch_index, const Group& group) const;
    // Becomes what `larger` is, of which the first sizes are these.
    void extend(const ModelProfiles& larger, const Group& group);
  };
  // Of one device and model, once it was measured there. With its key in half a line of the
  // processor's caches.
  struct Place {
    const Duration* estimates = nullptr;
    RollingProfile* exec = nullptr;
    uint32_t profiles = 0;  // position of all in measured_
    uint16_t sizes = 0;     // of batches
    uint16_t buckets = 0;
  };
  // What is known of EXEC of one row of a model and bucket at one width, of all devices of
  // one group.
  struct Belief {
    // Follows the shortest measurements; each doubt takes a little off. Zero where
    // nothing was measured.
    Duration floor;
    TimePoint next_doubt;
  };
  // Of one group.
  struct Seeds {
    ModelProfiles profiles;       // without sizes: it cannot run the model
    std::vector<Belief> beliefs;  // [width_index * buckets + bucket]
  };
  static ModelProfiles seed(const Runnable& runnable, const Group& group);
  // What is expected of a device of one lane, for one of a group.
  static ModelProfiles widened(ModelProfiles profiles, const Group& group);
  static Seeds seeds_of(const Runnable& runnable, const Group& group);
  // The batch was measured for the first time on this width: adds to the group's scaling how long it took
  // beside the next wider one and the next narrower one on which it was measured.
  void learn_scaling(const ExecShape& shape, const ModelProfiles& profiles);
  // Of all models and devices of the group: its scaling has changed.
  void update_group(uint32_t group);
  // Finds it or makes it; that of one lane comes first.
  uint32_t group(KindId kind, uint32_t lanes);
  void extend_group(uint32_t group, ModelId model, const Runnable& runnable);
  void doubt(uint32_t group, ModelId model, BucketId bucket, TimePoint now);
  // nullptr if the device has no profiles of its own of this model.
  const Place* find_own(DeviceId device, ModelId model) const { return places_[device.value()].find(model); }
  // Of the device's group.
  const ModelProfiles& seeds(DeviceId device, ModelId model) const {
    return seeds_[device_groups_[device.value()]][model.value()].profiles;
  }
  Seeds& seed_slot(uint32_t group, ModelId model);
  Place place_at(uint32_t profiles);
  // For writing: a device has profiles of its own from its first measurement on.
  const Place& own(DeviceId device, ModelId model);

  uint32_t lanes(DeviceId device) const { return groups_[device_groups_[device.value()]].lanes; }

  const std::shared_ptr<const OverlapPredictor> overlap_;
  std::vector<std::optional<uint32_t>> overlapping_;  // by model: its position in overlap_
  std::vector<Group> groups_;
  std::vector<uint32_t> device_groups_;             // by device
  std::vector<std::vector<Seeds>> seeds_;           // by group and model
  uint32_t models_ = 0;                             // ids are below
  std::vector<FlatMap<ModelId, Place>> places_;     // by device
  std::vector<std::vector<DeviceId>> measured_on_;  // by model: devices of whose places_ it is
  std::vector<uint64_t> doubts_;                    // by model: how many have counted
  uint64_t revision_ = 0;
  std::vector<ModelProfiles> measured_;
  std::vector<uint32_t> unused_;  // positions in measured_
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_ROLLING_DURATION_MODEL_H_
