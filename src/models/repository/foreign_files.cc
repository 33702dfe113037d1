#include "models/repository/foreign_files.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <system_error>

namespace foliot {
namespace {

namespace fs = std::filesystem;

struct ForeignSettings {
  std::string_view file;
  std::string_view reader;
};

constexpr std::array<ForeignSettings, 3> kSettings{
    {{"config.pbtxt", "Triton"}, {"model-settings.json", "MLServer"}, {"MLmodel", "MLflow"}}};

constexpr std::array<std::string_view, 12> kModels{"model.joblib", "model.pkl", "model.skops", "model.json",
                                                   "model.ubj",    "model.bst", "model.txt",   "model.cbm",
                                                   "model.pt",     "model.pth", "model.plan",  "saved_model.pb"};

bool has_file(const fs::path& folder, std::string_view file) {
  std::error_code error;
  return fs::is_regular_file(folder / file, error);
}

}  // namespace

std::vector<std::string> notes_of_foreign_settings(const ModelFolder& model) {
  std::vector<std::string> notes;
  if (!model.config.compile.owns_folder) return notes;
  for (const auto& [file, reader] : kSettings) {
    if (!has_file(model.folder, file)) continue;
    notes.push_back(
        fmt::format("{} is a file of {}'s and is not read; batch sizes, delays, deadlines and the name stand in "
                    "model.toml",
                    file, reader));
  }
  return notes;
}

std::string hint_of_foreign_model(const fs::path& folder) {
  for (const std::string_view file : kModels) {
    if (!has_file(folder, file)) continue;
    return fmt::format("; {} is there: export it to ONNX, or serve it by a model.py that loads it (docs/CONTAINERS.md)",
                       file);
  }
  return {};
}

}  // namespace foliot
