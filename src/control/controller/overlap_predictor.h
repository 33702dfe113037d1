// OverlapPredictor: how long a group of EXEC segments takes that begin at once beside each
// other: what the longest of them takes alone on the lanes that it gets, times a correction that
// an Mlp has learned from what runs beside it (Abacus, section 5).
//
// What segments take alone was profiled, operator by operator at each width (ProfiledModel).
// Features of each model that it knows: whether it is in the group, where its segment begins
// and ends as shares of its operators, how long its whole EXEC takes at that width (which stands
// for batch size and sequence length), and the segment's share of the longest.
//
// Groups with a model that it does not know, with one twice, or on a device of another number of
// lanes are expected to gain nothing.
//
// Threading: predict() from any thread; no allocation.
#ifndef FOLIOT_CONTROL_CONTROLLER_OVERLAP_PREDICTOR_H_
#define FOLIOT_CONTROL_CONTROLLER_OVERLAP_PREDICTOR_H_

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/controller/duration_model.h"
#include "control/controller/mlp.h"
#include "foundation/core/lanes.h"

namespace foliot {

// How many lanes each of so many segments gets.
inline uint32_t group_width(uint32_t lane_count, uint32_t segments) {
  return segments == 1 ? lane_count : std::bit_floor(lane_count / segments);
}

// A model as its smallest batch size was profiled alone on a device.
struct ProfiledModel {
  std::string name;     // for people
  std::string content;  // ModelInfo::content, which says which model it is
  uint32_t operators = 1;
  // [bucket][width index][operator]: from the begin until that operator is over, in ns. Ascending.
  std::vector<std::vector<std::vector<float>>> ends;

  // REQUIRES: it was profiled in this bucket and width.
  Duration alone(uint32_t bucket, uint32_t width_index, OperatorRange range) const;
};

class OverlapPredictor {
 public:
  static constexpr uint32_t kModelsMax = 16;
  static constexpr uint32_t kFeatures = 5;  // of each model
  using Features = std::array<float, size_t{kModelsMax} * kFeatures>;

  // A segment, by the position of its model.
  struct Part {
    uint32_t model = 0;
    uint32_t bucket = 0;
    OperatorRange range;
  };

  // REQUIRES: up to kModelsMax models, all profiled at each width of `lane_count` lanes;
  // mlp.inputs() is kFeatures for each.
  OverlapPredictor(uint32_t lane_count, std::vector<ProfiledModel> models, Mlp mlp);

  uint32_t lane_count() const { return lane_count_; }
  const std::vector<ProfiledModel>& models() const { return models_; }
  const Mlp& mlp() const { return mlp_; }

  // The position of this model; nullopt if it was not profiled.
  std::optional<uint32_t> find(const ModelInfo& model) const;

  // Of each group; `known`: by ModelId, what find() says, of models of which it can say something.
  void predict(std::span<const std::span<const ExecSegment>> groups, std::span<const std::optional<uint32_t>> known,
               std::span<Duration> durations) const;
  // REQUIRES: at least two parts, of different models.
  Duration predict(std::span<const Part> group) const;

  // What the longest of them takes alone on its lanes.
  static Duration longest(std::span<const ProfiledModel> models, uint32_t lane_count, std::span<const Part> group);
  static void features(std::span<const ProfiledModel> models, uint32_t lane_count, std::span<const Part> group,
                       Features& to);

 private:
  // False: not all of it is known.
  bool parts_of(std::span<const ExecSegment> group, std::span<const std::optional<uint32_t>> known,
                std::span<Part> parts) const;

  uint32_t lane_count_;
  std::vector<ProfiledModel> models_;
  Mlp mlp_;
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_OVERLAP_PREDICTOR_H_
