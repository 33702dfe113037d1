// probe_confinement(): what this kernel, as it is set up here, lacks to confine containers.
//
// Threading: any thread.
#ifndef FOLIOT_ENGINE_CONTAINER_CONFINEMENT_PROBE_H_
#define FOLIOT_ENGINE_CONTAINER_CONFINEMENT_PROBE_H_

#include <string>
#include <vector>

#include "engine/container/container_options.h"
#include "foundation/base/status.h"

namespace foliot {

// Starts the launcher, which confines itself as a container would be and says what it did without: "no ..."; empty:
// nothing. Of `options` only launcher, environment and safety.kernel count. Errors: TemporaryFolder::make()'s,
// ChildProcess::start()'s; kInternal: the launcher failed.
Result<std::vector<std::string>> probe_confinement(const ContainerOptions& options);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_CONTAINER_CONFINEMENT_PROBE_H_
