#include "models/repository/model_check.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <optional>

#include "foundation/base/error_text.h"
#include "foundation/platform/descriptor.h"

namespace foliot {

Result<ModelCheck::Finding> ModelCheck::check(const ModelFolder& model) {
  FOLIOT_RETURN_IF_ERROR(model.status);
  FOLIOT_ASSIGN_OR_RETURN(const std::optional<Package> package, packages_.find(model.model, model.config.compile));
  if (package) return Finding{.is_compiled = true, .notes = package->program->notes};
  const Descriptor output(::memfd_create("foliot-check", MFD_CLOEXEC));
  if (!output.is_open()) return Status::internal(fmt::format("cannot take memory: {}", error_text(errno)));
  // One batch size meets all operators; the priority is low, since a server may run here.
  CompileRequest request{
      .model = model.model, .options = model.config.compile, .threads = threads_, .share = CpuShare::kSmall};
  request.options.batch_sizes.resize(1);
  request.options.profile_runs = 1;
  FOLIOT_RETURN_IF_ERROR(compiler_.compile(std::move(request), output.number(), {}));
  return Finding{};
}

}  // namespace foliot
