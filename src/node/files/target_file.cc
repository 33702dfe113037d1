#include "node/files/target_file.h"

#include <fmt/format.h>

#include <vector>

#include "foundation/base/toml_text.h"
#include "foundation/config/toml_file.h"
#include "foundation/config/toml_reader.h"

namespace foliot {
namespace {

Status read_target(TomlReader& reader, NamedTargets& to) {
  std::vector<std::string> models;
  ModelTarget target;
  reader.texts("models", models);
  reader.whole("copies_least", target.copies_least);
  reader.whole("copies_most", target.copies_most);
  reader.texts("kinds", target.kinds);
  reader.whole("batch_most", target.batch_most, 1);
  if (models.empty()) reader.fail("needs 'models', a list of their names");
  if (target.copies_least > target.copies_most) {
    reader.fail("copies_least", fmt::format("is {}, and must not be above copies_most, which is {}",
                                            target.copies_least, target.copies_most));
  }
  for (const std::string& model : models) {
    if (!to.emplace(model, target).second)
      reader.fail("models", fmt::format("has '{}', which has targets above", model));
  }
  return reader.finish();
}

}  // namespace

Result<NamedTargets> read_target_file(const std::filesystem::path& file) {
  FOLIOT_ASSIGN_OR_RETURN(const toml::table table, read_toml_file(file));
  TomlReader reader(table, file.string());
  NamedTargets targets;
  for (TomlReader& each : reader.tables("targets")) FOLIOT_RETURN_IF_ERROR(read_target(each, targets));
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  return targets;
}

Result<WatchedFiles> use_target_file(const std::filesystem::path& file,
                                     const std::function<void(std::shared_ptr<const NamedTargets>)>& use,
                                     const std::function<void(const std::string&)>& on_failure) {
  const auto read = [file, use] {
    auto targets = read_target_file(file);
    if (targets.ok()) use(std::make_shared<const NamedTargets>(*std::move(targets)));
    return targets.status();
  };
  FOLIOT_RETURN_IF_ERROR(read());
  return WatchedFiles{.files = {file}, .on_change = [read, on_failure] {
                        const Status status = read();
                        if (!status.ok()) on_failure(status.message());
                      }};
}

std::string target_file_text(const NamedTargets& targets) {
  std::string text;
  for (const auto& [model, target] : targets) {
    text += fmt::format("[[targets]]\nmodels = [{}]\n", toml_text(model));
    if (target.copies_least > 0) text += fmt::format("copies_least = {}\n", target.copies_least);
    if (target.copies_most != ModelTarget::kNoLimit) text += fmt::format("copies_most = {}\n", target.copies_most);
    if (!target.kinds.empty()) text += fmt::format("kinds = {}\n", toml_texts(target.kinds));
    if (target.batch_most != ModelTarget::kNoLimit) text += fmt::format("batch_most = {}\n", target.batch_most);
    text += "\n";
  }
  return text;
}

}  // namespace foliot
