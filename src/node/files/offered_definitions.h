// What a worker offers of its repository besides models: its pipelines and tasks, as their files say. Broken ones are
// offered, too, so that clients see what is wrong.
//
// Threading: any.
#ifndef FOLIOT_NODE_FILES_OFFERED_DEFINITIONS_H_
#define FOLIOT_NODE_FILES_OFFERED_DEFINITIONS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "cluster/transport/message.h"
#include "foundation/base/status.h"

namespace foliot {

// `notes` gets a sentence for each that is broken, or too much to be offered. Errors: as scan_pipelines().
Result<Pipelines> read_offered_pipelines(const std::filesystem::path& repository, std::vector<std::string>& notes);
// Errors: as scan_tasks().
Result<Tasks> read_offered_tasks(const std::filesystem::path& repository, std::vector<std::string>& notes);

}  // namespace foliot

#endif  // FOLIOT_NODE_FILES_OFFERED_DEFINITIONS_H_
