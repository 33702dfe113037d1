#include "container/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "base/error_text.h"

namespace foliot {

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  std::filesystem::path below = std::filesystem::temp_directory_path(error);
  if (error) below = "/tmp";
  std::string name = below / "foliot-container-XXXXXX";
  if (::mkdtemp(name.data()) != nullptr) return TemporaryFolder(name);
  return Status::resource_exhausted(fmt::format("cannot make a folder in {}: {}", below.string(), error_text(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // the process may have made folders that it cannot change
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace foliot
