// PersonalStatistics: how good a personal model is, and whether it is to be retrained.
#ifndef FOLIOT_PERSONAL_PERSONAL_STATISTICS_H_
#define FOLIOT_PERSONAL_PERSONAL_STATISTICS_H_

#include <cstdint>
#include <string>

#include "personal/running_loss.h"

namespace foliot {

// When a version is to be retrained. Losses are those of the last observations.
struct RetrainLimits {
  double loss_max = 0;               // 0: no limit
  uint64_t observations_max = 0;     // since training; 0: no limit
  uint64_t observations_min = 1000;  // of a loss, before it is compared with its limit
};

struct PersonalStatistics {
  std::string version{};
  uint64_t users = 0;
  uint64_t observations = 0;  // since the version is served
  uint64_t log_number = 0;    // of the last record that counts
  RunningLoss overall{};      // squared errors, before each update
  RunningLoss pool{};         // of these, of the validation pool
  RunningLoss held_out{};     // by the weights that all others of the update gave
  bool has_drifted = false;
  uint64_t corrections = 0;   // of matrices, after many updates
  uint64_t builds = 0;        // of matrices of users that were not in the cache
  uint64_t cached_lists = 0;  // of topK, that were found in the cache
  // Empty: the version need not be retrained; else why.
  std::string retrain{};
};

// Why; empty: it need not.
std::string why_retrain(const PersonalStatistics& statistics, const RetrainLimits& limits);

}  // namespace foliot

#endif  // FOLIOT_PERSONAL_PERSONAL_STATISTICS_H_
