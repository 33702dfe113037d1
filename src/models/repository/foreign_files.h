// Files of other servers in a model's folder, whose contents are not read, which has to be said.
#ifndef FOLIOT_MODELS_REPOSITORY_FOREIGN_FILES_H_
#define FOLIOT_MODELS_REPOSITORY_FOREIGN_FILES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "models/repository/model_folder.h"

namespace foliot {

// A sentence for each file of settings there that another server would read.
// A model that is a file among others has none.
std::vector<std::string> notes_of_foreign_settings(const ModelFolder& model);

// Says how a model in the format of its framework can be served: "; ..." behind an error; empty: there is none.
std::string hint_of_foreign_model(const std::filesystem::path& folder);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_FOREIGN_FILES_H_
