// folder_mark(): a text that one folder of jobs has and no other: servers that share jobs see by it that they share the
// folder, wherever each has it.
#ifndef FOLIOT_EDGE_JOBS_FOLDER_MARK_H_
#define FOLIOT_EDGE_JOBS_FOLDER_MARK_H_

#include <filesystem>
#include <string>

#include "foundation/base/status.h"

namespace foliot {

// That of the file `shared` in this folder (JobFolder::own()), which becomes `fresh` if there is none; of several that
// do so at a time, one's. Errors: kInvalidArgument naming the file.
Result<std::string> folder_mark(const std::filesystem::path& folder, const std::string& fresh);

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_FOLDER_MARK_H_
