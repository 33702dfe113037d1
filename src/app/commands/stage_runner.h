// StageRunner: the model of a pipeline's stage, alone on this machine, to be measured.
//
// Threading: one thread, which made it.
#ifndef FOLIOT_APP_COMMANDS_STAGE_RUNNER_H_
#define FOLIOT_APP_COMMANDS_STAGE_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/program/package.h"
#include "foundation/base/status.h"
#include "foundation/base/time.h"
#include "foundation/core/ids.h"
#include "foundation/core/model_info.h"
#include "models/repository/model_folder.h"

namespace foliot {

// Tensors of one row, by the model's inputs or outputs, in the shapes of a bucket.
using StageRow = std::vector<std::vector<std::byte>>;

class StageRunner {
 public:
  virtual ~StageRunner() = default;
  // Its only Runnable is of the kind that a server has for it.
  const std::shared_ptr<const ModelInfo>& model() const { return model_; }
  // Runs the rows as one batch, and returns how long that took; of a compiled model without the copies of inputs and
  // outputs. `outputs` gets a row for each. REQUIRES: 1 to the largest batch size, tensors as the bucket has them.
  virtual Result<Duration> run(BucketId bucket, std::span<const StageRow* const> rows,
                               std::vector<StageRow>& outputs) = 0;

 protected:
  std::shared_ptr<const ModelInfo> model_;
};

// Errors: ProgramRunner::create()'s.
Result<std::unique_ptr<StageRunner>> run_compiled_stage(const ModelFolder& folder, Package package, uint32_t threads,
                                                        const std::string& kind);
// Starts a process, confined as a server's, and measures it on zeros. Lines that it prints go to standard error.
// `batch_sizes`: those that it can take count. Errors: ContainerProcess::start()'s, and profile()'s.
Result<std::unique_ptr<StageRunner>> run_container_stage(const ModelFolder& folder,
                                                         const std::vector<uint32_t>& batch_sizes);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_STAGE_RUNNER_H_
