// Files of other servers in a model's folder: what their settings change of a model, and which are not read, which has
// to be said.
#ifndef FOLIOT_MODELS_REPOSITORY_FOREIGN_FILES_H_
#define FOLIOT_MODELS_REPOSITORY_FOREIGN_FILES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "models/repository/model_folder.h"

namespace foliot {

// Changes what a model.toml may then change. Before it is known what kind of model it is: `defaults` may be a
// container's.
void apply_foreign_settings(const ForeignSettings& settings, ModelConfig& defaults);

// After model.toml was read: notes which settings it overrules, and gives a container its batches. REQUIRES: the
// model's `config` was read over apply_foreign_settings().
void reconcile_foreign_settings(ModelFolder& model);

// A sentence for each field and file of settings there that another server would read, and that is not heeded.
// A model that is a file among others has none.
std::vector<std::string> notes_of_foreign_settings(const ModelFolder& model);

// Says how a model in the format of its framework can be served: "; ..." behind an error; empty: there is none.
std::string hint_of_foreign_model(const std::filesystem::path& folder);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_FOREIGN_FILES_H_
