#include "foundation/config/code_file.h"

#include <fmt/format.h>

#include <string>

#include "foundation/base/folder_listing.h"

namespace foliot {

namespace fs = std::filesystem;

Result<fs::path> find_code_file(const fs::path& folder, const fs::path& named) {
  FOLIOT_ASSIGN_OR_RETURN(const bool has_code, leads_to_file(folder / kCodeFile));
  if (has_code) return folder / kCodeFile;
  if (!named.empty()) {
    FOLIOT_ASSIGN_OR_RETURN(const bool is_there, leads_to_file(folder / named));
    return is_there ? folder / named : fs::path();
  }
  FOLIOT_ASSIGN_OR_RETURN(const bool is_of_mlflow, leads_to_file(folder / kMlflowFile));
  if (is_of_mlflow) return folder / kMlflowFile;
  fs::path found;
  for (const std::string_view suffix : kFrameworkSuffixes) {
    const fs::path file = folder / ("model" + std::string(suffix));
    FOLIOT_ASSIGN_OR_RETURN(const bool is_there, leads_to_file(file));
    if (!is_there) continue;
    if (!found.empty()) {
      return Status::invalid_argument(
          fmt::format("{} and {} are two models; remove one of them, or write a {} that loads both", found.string(),
                      file.string(), (folder / kCodeFile).string()));
    }
    found = file;
  }
  return found;
}

}  // namespace foliot
