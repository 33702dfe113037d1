// StageProfile: how long a stage of a pipeline takes, by kind of device and batch size, as it
// was measured on one replica alone (InferLine, section 4.4, Profiler).
//
// A stage whose time depends on its inputs has several quantiles of it; a planner chooses one
// (section 4.9 proposes the tail).
#ifndef FOLIOT_PLANNING_PIPELINES_STAGE_PROFILE_H_
#define FOLIOT_PLANNING_PIPELINES_STAGE_PROFILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "foundation/base/time.h"

namespace foliot {

inline constexpr uint32_t kPlannedBatchMax = 64;  // rows

struct DurationQuantile {
  double quantile = 1;               // in (0, 1]
  std::vector<Duration> of_batches;  // by KindProfile::batch_sizes; above 0, never falls
};

struct KindProfile {
  std::string kind;
  std::vector<uint32_t> batch_sizes;        // ascending, from 1 to at most kPlannedBatchMax
  std::vector<DurationQuantile> quantiles;  // ascending; at least one

  // Of a batch of so many rows, at the least quantile that is not below `quantile`, or at the
  // highest. A batch runs at the next batch size that was measured.
  // REQUIRES: rows from 1 to the largest batch size.
  Duration duration(uint32_t rows, double quantile) const;

  // Makes durations legal where chance has a larger batch take less time than a smaller one.
  void raise_to_smaller();

  // Errors: kInvalidArgument naming what is wrong.
  Status check() const;
};

// Of numbers from 0 on, of which the n-th is so probable beside the others; 0: there are none.
double mean_of_shares(const std::vector<double>& shares);

struct StageProfile {
  std::string stage;
  // Visits of a query, on average (the paper's scale factor s): of a stage that is visited once, the
  // share of the queries that visit it, in [0, 1].
  double scale_factor = 1;
  std::vector<KindProfile> kinds;
  // Of a stage that is visited for each element: how probable 0, 1, 2, ... visits are, beside each
  // other; their mean is the scale factor. Empty: only that is known.
  std::vector<double> visits_shares{};
  bool has_visits = false;  // they were measured or given

  // nullptr if it was not measured.
  const KindProfile* find(std::string_view kind) const;
};

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_STAGE_PROFILE_H_
