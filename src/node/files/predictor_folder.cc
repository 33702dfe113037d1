#include "node/files/predictor_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/store/disk_storage.h"
#include "planning/profiling/predictor_file.h"

namespace foliot {
namespace {

Result<OverlapPredictor> read(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(const std::unique_ptr<DiskStorage> storage, DiskStorage::open_to_read(file.parent_path()));
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, storage->read(file.filename().string()));
  return decode_predictor(bytes);
}

}  // namespace

std::filesystem::path predictor_file(const std::filesystem::path& cache) {
  return cache / kOverlapFolder / kPredictorFileName;
}

std::shared_ptr<const OverlapPredictor> open_predictor(const std::filesystem::path& file,
                                                       std::optional<uint32_t> lane_count,
                                                       const std::function<void(const std::string&)>& note) {
  const auto unusable = [&](const std::string& reason) {
    note(fmt::format("scheduler overlap: {}: {}; models run one at a time", file.string(), reason));
    return nullptr;
  };
  if (lane_count == 1u) return unusable("devices have one lane; choose --lanes");
  Result<OverlapPredictor> predictor = read(file);
  if (!predictor.ok()) {
    return predictor.status().code() == StatusCode::kNotFound
               ? unusable("there is no predictor; `foliot profile` makes one")
               : unusable(predictor.status().message());
  }
  if (lane_count && predictor->lane_count() != *lane_count) {
    return unusable(
        fmt::format("it was profiled on {} lanes, and devices have {}", predictor->lane_count(), *lane_count));
  }
  return std::make_shared<const OverlapPredictor>(std::move(predictor).value());
}

std::string unprofiled_note(const OverlapPredictor& predictor, const ModelInfo& model) {
  if (const std::optional<uint32_t> position = predictor.find(model)) {
    const uint32_t operators = predictor.models()[*position].operators;
    if (std::ranges::any_of(model.runnables, [&](const Runnable& own) { return own.operator_count() == operators; }))
      return {};
  }
  return fmt::format("model '{}' was not profiled as it is now, and runs beside no other; `foliot profile` it",
                     model.name);
}

}  // namespace foliot
