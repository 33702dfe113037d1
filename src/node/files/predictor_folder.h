// The folder, beside compiled models, of the predictor that the policy `overlap` uses: found where a
// server begins. What cannot be used is said and left out: models then run one at a time.
#ifndef FOLIOT_NODE_FILES_PREDICTOR_FOLDER_H_
#define FOLIOT_NODE_FILES_PREDICTOR_FOLDER_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "control/controller/overlap_predictor.h"
#include "foundation/core/model_info.h"

namespace foliot {

// Where it is, beside these compiled models.
std::filesystem::path predictor_file(const std::filesystem::path& cache);
// nullptr if there is no predictor, or it is damaged, of another version or of another number of
// lanes, which `note` receives. `lane_count`: of the devices; nullopt: not known yet.
std::shared_ptr<const OverlapPredictor> open_predictor(const std::filesystem::path& file,
                                                       std::optional<uint32_t> lane_count,
                                                       const std::function<void(const std::string&)>& note);

// What there is to say of a model of which it knows nothing; empty: nothing.
std::string unprofiled_note(const OverlapPredictor& predictor, const ModelInfo& model);

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_PREDICTOR_FOLDER_H_
