// The hash of a model's files, by name and content: ModelInfo::content is made from it.
#ifndef FOLIOT_MODELS_REPOSITORY_MODEL_HASH_H_
#define FOLIOT_MODELS_REPOSITORY_MODEL_HASH_H_

#include <filesystem>

#include "foundation/base/hash.h"
#include "foundation/base/status.h"

namespace foliot {

// Adds all of list_model_files() to the hash. Errors: those of list_model_files(), and
// kInternal naming a file that cannot be read.
Status add_model_files(const std::filesystem::path& model, StreamHash& hash, bool owns_folder = true);

}  // namespace foliot

#endif  // FOLIOT_MODELS_REPOSITORY_MODEL_HASH_H_
