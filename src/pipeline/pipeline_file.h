// Reads the pipeline.toml of a folder of a repository (pipeline/pipeline_spec.h has the format).
#ifndef FOLIOT_PIPELINE_PIPELINE_FILE_H_
#define FOLIOT_PIPELINE_PIPELINE_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pipeline/pipeline_spec.h"

namespace foliot {

// Checked as far as that needs no models. Errors: kInvalidArgument naming file, line and what
// is wrong, as the pipeline's status.
PipelineSpec read_pipeline(const std::string& name, const std::filesystem::path& file);

// The same of what such a file says; `file` is what errors call it.
PipelineSpec parse_pipeline(const std::string& name, const std::string& file, std::string_view text);

// All pipelines of a repository, by name; broken ones with their status. Errors: kInternal if
// it cannot be read.
Result<std::vector<PipelineSpec>> scan_pipelines(const std::filesystem::path& repository);

}  // namespace foliot

#endif  // FOLIOT_PIPELINE_PIPELINE_FILE_H_
