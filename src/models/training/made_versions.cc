#include "models/training/made_versions.h"

#include <system_error>
#include <vector>

#include "answer/personal/service/personal_file.h"
#include "answer/personal/service/retrain_triggers.h"
#include "foundation/base/folder_listing.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRefusedFolder = ".refused";

}  // namespace

std::string newest_name(const fs::path& folder) {
  const Result<fs::path> newest = newest_version(folder);
  return newest.ok() ? newest->filename().string() : "";
}

void remove_older(const fs::path& folder, const std::string& served, const std::string& before) {
  const Result<std::vector<fs::path>> versions = list_folder(folder);
  if (!versions.ok()) return;
  for (const fs::path& version : *versions) {
    const std::string name = version.filename().string();
    std::error_code ignored;
    if (name == served || name == before || !fs::exists(version / kMadeByServer, ignored)) continue;
    fs::remove_all(version, ignored);
  }
}

void set_aside(const fs::path& version, const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder / kRefusedFolder, ignored);
  fs::rename(version, folder / kRefusedFolder, ignored);
}

}  // namespace foliot
