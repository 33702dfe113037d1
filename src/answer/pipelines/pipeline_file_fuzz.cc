// libFuzzer target: any file, read as a pipeline.toml.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "answer/pipelines/pipeline_file.h"
#include "answer/pipelines/spec_check.h"
#include "foundation/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int memory = memfd_create("fuzz.toml", MFD_CLOEXEC);
  static const std::string file = "/proc/self/fd/" + std::to_string(memory);
  FOLIOT_CHECK(ftruncate(memory, 0) == 0 && pwrite(memory, data, size, 0) == static_cast<ssize_t>(size));
  const foliot::PipelineSpec spec = foliot::read_pipeline("fuzz", file);
  if (!spec.status.ok()) {
    FOLIOT_CHECK(spec.status.message().starts_with(file));
    return 0;
  }
  FOLIOT_CHECK(!spec.stages.empty() && spec.stages.size() <= foliot::kStagesMax && !spec.outputs.empty());
  FOLIOT_CHECK(foliot::always_visited(spec).size() == spec.stages.size());
  return 0;
}
