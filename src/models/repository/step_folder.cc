#include "models/repository/step_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>

#include "foundation/base/hash.h"
#include "models/steps/pipeline_steps.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

std::string settings_of(const StepModel& step) {
  std::string text = "# Made by Foliot from a step of a pipeline.\n";
  if (!step.buckets.empty()) text += "[buckets]\n";
  for (const auto& [name, values] : step.buckets) text += fmt::format("{} = [{}]\n", name, fmt::join(values, ", "));
  return text;
}

std::string hash_of(const StepModel& step, const std::string& settings) {
  StreamHash hash;
  for (const std::string& text : {step.onnx, settings}) {
    hash.update(std::as_bytes(std::span(text)));
    hash.update(std::as_bytes(std::span("\0", 1)));
  }
  return hash.digest_hex();
}

Status cannot_write(const fs::path& folder, const std::string& reason) {
  return Status::internal(fmt::format(
      "cannot write {}, where the models of a pipeline's steps are kept: {}; make it writable, or name another folder "
      "with --cache",
      folder.string(), reason));
}

bool write_file(const fs::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  return file.good();
}

// Whole, or not at all: others may write the same at this time.
Status write_folder(const fs::path& folder, const StepModel& step, const std::string& settings) {
  std::error_code error;
  if (fs::exists(folder / "model.onnx", error)) return Status();
  fs::create_directories(folder.parent_path(), error);
  if (error) return cannot_write(folder.parent_path(), error.message());
  std::string draft = (folder.parent_path() / ".draft_XXXXXX").string();
  if (::mkdtemp(draft.data()) == nullptr) return cannot_write(folder.parent_path(), std::strerror(errno));
  const bool written =
      write_file(fs::path(draft) / "model.onnx", step.onnx) && write_file(fs::path(draft) / "model.toml", settings);
  if (written) fs::rename(draft, folder, error);
  std::error_code ignored;
  fs::remove_all(draft, ignored);
  if (fs::exists(folder / "model.onnx", ignored)) return Status();
  return cannot_write(folder, error ? error.message() : "no space is left, or it may not be written");
}

}  // namespace

std::vector<ModelFolder> make_step_folders(const PipelineSpec& pipeline, const fs::path& steps,
                                           const ModelConfig& defaults) {
  constexpr size_t kHashDigits = 16;
  std::vector<ModelFolder> folders;
  if (!pipeline.status.ok()) return folders;
  for (const PipelineStep& step : steps_of(pipeline)) {
    ModelFolder& made = folders.emplace_back();
    made.name = step.name;
    made.pipeline = pipeline.name;
    made.config = defaults;
    made.status = step.model.status();
    if (!step.model.ok()) continue;
    const std::string settings = settings_of(*step.model);
    made.folder = steps / (step.name + "." + hash_of(*step.model, settings).substr(0, kHashDigits));
    made.model = made.folder / "model.onnx";
    made.status = write_folder(made.folder, *step.model, settings);
    if (!made.status.ok()) continue;
    Result<ModelConfig> config = read_model_config(made.folder / "model.toml", defaults);
    made.status = config.status();
    if (config.ok()) made.config = *std::move(config);
  }
  return folders;
}

}  // namespace foliot
