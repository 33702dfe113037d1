#include "models/repository/model_hash.h"

#include <span>
#include <string>
#include <vector>

#include "models/repository/model_folder.h"

namespace foliot {

Status add_model_files(const std::filesystem::path& model, StreamHash& hash, bool owns_folder) {
  FOLIOT_ASSIGN_OR_RETURN(const auto files, list_model_files(model, owns_folder));
  for (const std::filesystem::path& file : files) {
    const std::string name = file.lexically_relative(model.parent_path()).string();
    hash.update(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    FOLIOT_RETURN_IF_ERROR(hash.update_from(file));
  }
  return Status();
}

}  // namespace foliot
