#include "node/repository/container_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/container/confinement_probe.h"
#include "engine/container/temporary_folder.h"

namespace foliot {

Status check_containers(const std::vector<ModelFolder>& folders, const std::vector<std::string>& launcher,
                        const ContainerSafety& safety, StartupReporter& reporter) {
  const size_t removed = TemporaryFolder::remove_abandoned();
  if (removed > 0) reporter.on_note(fmt::format("removed {} folders of containers that a killed server left", removed));
  if (!safety.strict && std::ranges::none_of(folders, &ModelFolder::is_container)) return Status();
  const auto missing = probe_confinement({.launcher = launcher, .safety = {.kernel = safety.kernel}});
  if (!missing.ok() && !safety.strict) {  // the containers will say so, too
    reporter.on_note(fmt::format("how containers are confined is not known: {}", missing.status().message()));
    return Status();
  }
  FOLIOT_RETURN_IF_ERROR(missing.status());
  if (missing->empty()) return Status();
  if (safety.strict) {
    return Status::invalid_argument(
        fmt::format("this kernel cannot confine containers as --containers strict demands: {}; see the table in "
                    "docs/SECURITY.md, or leave --containers strict out",
                    fmt::join(*missing, "; ")));
  }
  reporter.on_note(fmt::format("this kernel confines containers less than it could: {}", fmt::join(*missing, "; ")));
  return Status();
}

}  // namespace foliot
