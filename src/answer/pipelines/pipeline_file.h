// Reads the pipeline.toml of a folder of a repository (answer/pipelines/pipeline_spec.h has the format).
#ifndef FOLIOT_ANSWER_PIPELINES_PIPELINE_FILE_H_
#define FOLIOT_ANSWER_PIPELINES_PIPELINE_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "answer/pipelines/pipeline_spec.h"
#include "foundation/base/status.h"

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

#endif  // FOLIOT_ANSWER_PIPELINES_PIPELINE_FILE_H_
