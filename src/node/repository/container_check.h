// check_containers(): what a server does about containers before it starts any.
//
// Threading: none.
#ifndef FOLIOT_NODE_REPOSITORY_CONTAINER_CHECK_H_
#define FOLIOT_NODE_REPOSITORY_CONTAINER_CHECK_H_

#include <string>
#include <vector>

#include "engine/container/container_options.h"
#include "foundation/base/status.h"
#include "models/repository/model_folder.h"
#include "node/repository/startup_reporter.h"

namespace foliot {

// Removes the folders that containers of killed servers left. If one of `folders` is a container, or if `safety` is
// strict, starts the launcher once to find what this kernel lacks, which is noted. Errors: kInvalidArgument: it lacks
// something, and `safety` is strict; the launcher's.
Status check_containers(const std::vector<ModelFolder>& folders, const std::vector<std::string>& launcher,
                        const ContainerSafety& safety, StartupReporter& reporter);

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_CONTAINER_CHECK_H_
