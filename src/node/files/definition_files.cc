#include "node/files/definition_files.h"

#include <optional>
#include <system_error>
#include <utility>

#include "foundation/config/repository_path.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

std::optional<std::vector<fs::path>> list_files(const fs::path& repository, const std::string& file) {
  const auto entries = list_repository(repository);
  if (!entries.ok()) return std::nullopt;
  std::vector<fs::path> files;
  for (const fs::path& entry : *entries) {
    std::error_code ignored;
    if (entry.filename().string().starts_with('.')) continue;
    if (!fs::is_regular_file(entry / file, ignored)) continue;
    files.push_back(entry / file);
    // Code that it names.
    for (fs::directory_iterator at(entry, ignored), end; !ignored && at != end; at.increment(ignored)) {
      if (at->path().extension() == ".py") files.push_back(at->path());
    }
  }
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
