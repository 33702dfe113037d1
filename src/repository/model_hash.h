// The hash of a model's files, by name and content: ModelInfo::content is made from it.
#ifndef FOLIOT_REPOSITORY_MODEL_HASH_H_
#define FOLIOT_REPOSITORY_MODEL_HASH_H_

#include <filesystem>

#include "base/hash.h"
#include "base/status.h"

namespace foliot {

// Adds all of list_model_files() to the hash. Errors: those of list_model_files(), and
// kInternal naming a file that cannot be read.
Status add_model_files(const std::filesystem::path& model, StreamHash& hash);

}  // namespace foliot

#endif  // FOLIOT_REPOSITORY_MODEL_HASH_H_
