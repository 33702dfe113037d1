// The target file: what should be of models (foundation/core/model_target.h), by their names, as `foliot plan
// --apply` writes it, or an operator:
//
//   [[targets]]
//   models = ["resnet50"]
//   copies_least = 2         # devices that hold it; default 0
//   copies_most = 4          # default no limit; 0: not served
//   kinds = ["cpu"]          # of device; default all
//   batch_most = 8           # rows; default no limit
#ifndef FOLIOT_NODE_FILES_TARGET_FILE_H_
#define FOLIOT_NODE_FILES_TARGET_FILE_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "control/controller/targets.h"
#include "foundation/base/status.h"
#include "node/files/file_watch.h"

namespace foliot {

// Errors: kInvalidArgument naming file, line and key; kNotFound. Whether the models and kinds
// exist is not known here.
Result<NamedTargets> read_target_file(const std::filesystem::path& file);

// Passes the file's targets to `use` now and, from the thread of a watch, when the file changes. What cannot be used
// is reported then, and what was passed before stays. Errors: as read_target_file().
Result<WatchedFiles> use_target_file(const std::filesystem::path& file,
                                     const std::function<void(std::shared_ptr<const NamedTargets>)>& use,
                                     const std::function<void(const std::string&)>& on_failure);

// Such a file.
std::string target_file_text(const NamedTargets& targets);

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_TARGET_FILE_H_
