#include "models/training/retrain_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "answer/personal/service/personal_model.h"
#include "foundation/base/units.h"

namespace foliot {

std::string RetrainSchedule::why(TimePoint now, const Facts& facts) const {
  if (now < not_before_ || facts.withheld < PersonalModel::kPoolMin) return "";
  const bool was_in_vain = facts.version == kept_version_ && facts.of_version < 2 * kept_observations_;
  if (triggers_.on_drift && !facts.quality.empty() && !was_in_vain) return facts.quality;
  const uint64_t observations = facts.observations - std::min(observations_, facts.observations);
  if (triggers_.after_observations > 0 && observations >= triggers_.after_observations) {
    return fmt::format("{} observations since the last retraining", observations);
  }
  if (triggers_.every && now - last_ >= *triggers_.every) {
    return fmt::format("the last retraining was {} ago", format_duration(now - last_));
  }
  return "";
}

void RetrainSchedule::end(TimePoint began, const Facts& with, TimePoint ended, RetrainOutcome outcome) {
  if (outcome == RetrainOutcome::kFailed) {
    const Duration pause = kPauseMin * (int64_t{1} << std::min(failures_, 20u));
    ++failures_;
    not_before_ = ended + std::max(std::min(pause, kPauseMax), ended - began);
    return;
  }
  failures_ = 0;
  last_ = began;
  observations_ = with.observations;
  kept_version_ = outcome == RetrainOutcome::kNotTaken ? with.version : "";
  kept_observations_ = with.of_version;
}

}  // namespace foliot
