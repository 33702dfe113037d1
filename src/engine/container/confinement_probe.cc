#include "engine/container/confinement_probe.h"

#include <fmt/format.h>

#include <utility>

#include "engine/container/container_launch.h"
#include "engine/container/temporary_folder.h"
#include "foundation/base/escaped_text.h"
#include "foundation/base/units.h"
#include "foundation/platform/clock.h"
#include "foundation/process/child_process.h"

namespace foliot {
namespace {

// It starts within a tenth of a second; a cold disk takes longer.
constexpr Duration kTimeout = Duration::seconds(30);

}  // namespace

Result<std::vector<std::string>> probe_confinement(const ContainerOptions& options) {
  FOLIOT_ASSIGN_OR_RETURN(const TemporaryFolder temporary, TemporaryFolder::make());
  ChildOptions child{.command = options.launcher, .environment = container_environment(options, temporary.path())};
  child.input = encode_launch({.temporary = temporary.path(),
                               .disk_bytes = options.disk_bytes,
                               .namespaces = true,
                               .safety = {.kernel = options.safety.kernel},
                               .probes = true});
  if (options.safety.kernel.namespaces) child.namespaces.emplace();
  FOLIOT_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::start(child));
  std::string said, complained;
  const TimePoint begin = monotonic_now();
  while (process.listen(Duration::milliseconds(100), said, complained)) {
    if (monotonic_now() - begin < kTimeout) continue;
    return Status::internal(fmt::format("the launcher of containers did not end within {}", format_duration(kTimeout)));
  }
  if (!process.succeeded()) {
    return Status::internal(
        fmt::format("the launcher of containers failed: {} {}", process.ending(), escaped(complained.substr(0, 512))));
  }
  std::vector<std::string> missing;
  for (size_t end = 0; (end = said.find('\n')) != std::string::npos; said.erase(0, end + 1)) {
    missing.push_back(escaped(said.substr(0, end)));
  }
  return missing;
}

}  // namespace foliot
