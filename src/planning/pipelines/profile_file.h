// The profile file: the durations of the stages of a pipeline, by kind of device, and how often
// a query visits each:
//
//   [[profile]]
//   stage = "decode"
//   kind = "cpu"
//   batch_sizes = [1, 2, 4]
//   durations = ["2ms", "4ms", "8ms"]
//
//   [[profile]]
//   stage = "detect"
//   kind = "cuda"
//   batch_sizes = [1, 2, 4]
//   p50 = ["9ms", "14ms", "25ms"]      # where the time depends on the inputs: p50, p90, p99
//   p99 = ["21ms", "30ms", "50ms"]
//
//   [visits]
//   detect = 0.3                       # of all queries; of a stage that is absent, those that reach it
//   classify = [0.4, 0.3, 0.2, 0.1]    # for each element: how probable 0, 1, 2, ... visits are; or their mean, 1.0
#ifndef FOLIOT_PLANNING_PIPELINES_PROFILE_FILE_H_
#define FOLIOT_PLANNING_PIPELINES_PROFILE_FILE_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "planning/pipelines/stage_profile.h"

namespace foliot {

// By the names of the stages; none is without kinds.
using StageProfiles = std::map<std::string, StageProfile, std::less<>>;

// Errors: kInvalidArgument naming the file and, of what it says, line, stage and kind.
Result<StageProfiles> read_profile_file(const std::filesystem::path& file);

// Such a file with these profiles, in the order of the names: what read_profile_file() reads
// equals them, but for nanoseconds. REQUIRES: each has one quantile, or several of 0.5, 0.9 and 0.99.
std::string profile_file_text(const StageProfiles& profiles);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PIPELINES_PROFILE_FILE_H_
