#include "serving/definition_files.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

namespace foliot {
namespace {

namespace fs = std::filesystem;

std::optional<std::vector<fs::path>> list_files(const fs::path& repository, const std::string& file) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(repository, error)) {
    std::error_code ignored;
    if (entry.path().filename().string().starts_with('.')) continue;
    if (fs::is_regular_file(entry.path() / file, ignored)) files.push_back(entry.path() / file);
  }
  if (error) return std::nullopt;
  std::ranges::sort(files);
  return files;
}

}  // namespace

WatchedFiles definition_files(const fs::path& repository, std::string_view file, TakeDefinitions take,
                              std::function<void(const std::string&)> on_failure) {
  return {.files = {},
          .on_change =
              [take = std::move(take), on_failure = std::move(on_failure)] {
                const Result<std::vector<std::string>> notes = take();
                if (!notes.ok()) return on_failure(notes.status().message());
                for (const std::string& note : *notes) on_failure(note);
              },
          .list = [repository, file = std::string(file)] { return list_files(repository, file); }};
}

}  // namespace foliot
