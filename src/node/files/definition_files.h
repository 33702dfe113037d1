// DefinitionFiles: looks for changes of what is defined by one file in a folder of the repository:
// pipelines, tasks and applications. Each kind is read whole when one of its files was written,
// added or removed, and the part that serves it is given all of them.
//
// Threading: as FileWatch.
#ifndef FOLIOT_NODE_FILES_DEFINITION_FILES_H_
#define FOLIOT_NODE_FILES_DEFINITION_FILES_H_

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "node/files/file_watch.h"

namespace foliot {

// Takes what the files say now. Returns what of it is not served, and why, as sentences.
using TakeDefinitions = std::function<Result<std::vector<std::string>>()>;

// All files NAME/`file` of the repository. `on_failure`: with each of these sentences.
WatchedFiles definition_files(const std::filesystem::path& repository, std::string_view file, TakeDefinitions take,
                              std::function<void(const std::string&)> on_failure);

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_DEFINITION_FILES_H_
