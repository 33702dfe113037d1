// The file of an OverlapPredictor: what was profiled of its models, and the Mlp's weights, beside
// the packages that they are of. It begins with a version and a hash of all that follows.
#ifndef FOLIOT_PLANNING_PROFILING_PREDICTOR_FILE_H_
#define FOLIOT_PLANNING_PROFILING_PREDICTOR_FILE_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "control/controller/overlap_predictor.h"
#include "foundation/base/status.h"
#include "foundation/store/storage.h"

namespace foliot {

// In the folder of compiled models.
inline constexpr std::string_view kOverlapFolder = "overlap";
inline constexpr std::string_view kPredictorFileName = "predictor";

std::vector<std::byte> encode_predictor(const OverlapPredictor& predictor);
// Errors: kInvalidArgument, with what is wrong and what to do: another version, or damaged.
Result<OverlapPredictor> decode_predictor(std::span<const std::byte> bytes);

// Replaces the file, whole. Errors: the storage's.
Status write_predictor(Storage& storage, const OverlapPredictor& predictor);
// Errors: kNotFound if there is none; those of decode_predictor(); the storage's.
Result<OverlapPredictor> read_predictor(Storage& storage);

}  // namespace foliot

#endif  // FOLIOT_PLANNING_PROFILING_PREDICTOR_FILE_H_
