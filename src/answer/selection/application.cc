#include "answer/selection/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include "answer/selection/policies.h"
#include "foundation/base/hash.h"
#include "foundation/config/repository_path.h"
#include "foundation/config/toml_file.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kApplicationFile = "application.toml";

void read_models(TomlReader& reader, Application& application) {
  reader.texts("models", application.models);
  if (application.models.empty()) reader.fail("models", "must be a list of names of models, such as [\"a\", \"b\"]");
  if (application.models.size() > Application::kModelsMax) {
    reader.fail("models", fmt::format("has {} models; at most {} are allowed", application.models.size(),
                                      Application::kModelsMax));
  }
  std::set<std::string> names;
  for (const std::string& model : application.models) {
    if (!names.insert(model).second) reader.fail("models", fmt::format("has '{}' twice", model));
    if (model == application.name) reader.fail("models", fmt::format("has '{}', the application itself", model));
  }
}

void read_policy_of(const toml::table& table, TomlReader& reader, Application& application) {
  if (!reader.ok() || application.models.empty()) return;
  reader.leave("policy");
  Result<NamedPolicy> read = read_policy(table, reader.file(), application.models);
  if (!read.ok()) {
    application.status = read.status();
    return;
  }
  application.policy_name = read->name;
  application.policy = read->policy;
  application.own = read->own;
  if (read->own != nullptr) application.content += read->own->options().content;
  application.asks_several = read->asks_several;
}

// One row of an output: a number, a truth value, or a list of them.
void read_default(const toml::node& node, std::vector<double>& row) {
  const auto add = [&](const toml::node& value) {
    if (const auto flag = value.value_exact<bool>()) return row.push_back(*flag ? 1 : 0);
    row.push_back(value.is_number() ? value.value<double>().value_or(NAN) : NAN);
  };
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& value : *list) add(value);
  } else {
    add(node);
  }
}

void read_defaults(const toml::table& table, TomlReader& reader, Application& application) {
  const std::optional<TomlReader> defaults = reader.table("default");
  if (!defaults) return;
  for (const auto& [key, node] : *table.get("default")->as_table()) {
    std::vector<double>& row = application.defaults[std::string(key.str())];
    read_default(node, row);
    if (row.empty() || std::ranges::any_of(row, [](double value) { return std::isnan(value); })) {
      reader.fail("default", fmt::format("has a '{}' that is no number and no list of numbers", key.str()));
    }
  }
}

Status read_table(const toml::table& table, const fs::path& file, Application& application) {
  TomlReader reader(table, file.string());
  read_models(reader, application);
  read_policy_of(table, reader, application);
  reader.text("output", application.agreement.output);
  reader.flag("classes", application.agreement.classes);
  reader.not_negative("tolerance", application.agreement.tolerance);
  reader.positive("loss_scale", application.agreement.loss_scale);
  reader.share("confidence_min", application.confidence_min);
  reader.positive("default_slo", application.default_slo);
  reader.positive("feedback_window", application.feedback_window);
  reader.whole("feedback_max", application.feedback_max, 1);
  reader.whole("contexts_max", application.contexts_max, 1);
  read_defaults(table, reader, application);
  if (application.confidence_min > 0 && application.defaults.empty()) {
    reader.fail("confidence_min", "needs a default output, for answers that have less: a table [default]");
  }
  // Errors of the policy's own options have their line already.
  return application.status.ok() ? reader.finish() : application.status;
}

Status check_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* model : {"model.onnx", "model.py"}) {
    if (!fs::exists(folder / model, error)) continue;
    return Status::invalid_argument(
        fmt::format("{} has {} and {}; an application has no model of its own: move one of them to another folder",
                    folder.string(), kApplicationFile, model));
  }
  return Status();
}

Result<NamedPolicy> read_policy_at(std::string_view key, const toml::table& table, const std::string& file,
                                   const std::vector<std::string>& models);

// A file in Python beside `file`. `table` and `reader`: its options.
Result<NamedPolicy> read_own_policy(const toml::table& table, TomlReader& reader, const std::string& file,
                                    const std::string& name, const std::vector<std::string>& models) {
  OwnPolicyOptions options{.file = fs::path(file).parent_path() / name, .models = models};
  reader.flag("combines", options.combines);
  reader.text("python", options.python);
  reader.leave("fallback");
  FOLIOT_RETURN_IF_ERROR(reader.finish());
  StreamHash hash;
  std::error_code ignored;  // a pipe or a device would be read for ever
  const Status read = fs::is_regular_file(options.file, ignored)
                          ? hash.update_from(options.file)
                          : Status::not_found("it is not there, or no regular file");
  if (!read.ok()) {
    return Status::invalid_argument(fmt::format("{}: the policy '{}' cannot be read: {}; put the file beside {}", file,
                                                name, read.message(), kApplicationFile));
  }
  options.content = hash.digest_hex();
  const toml::table by_default{{"fallback", options.combines ? "exp4" : "exp3"}};
  FOLIOT_ASSIGN_OR_RETURN(NamedPolicy fallback,
                          read_policy_at("fallback", table.contains("fallback") ? table : by_default, file, models));
  if (fallback.own != nullptr || fallback.asks_several != options.combines) {
    return Status::invalid_argument(fmt::format(
        "{}: the fallback '{}' of the policy '{}' must be compiled in and ask {} for a call, since combines "
        "= {}: take {}",
        file, fallback.name, name, options.combines ? "several models" : "one model", options.combines,
        options.combines ? "\"exp4\" or \"majority\"" : "\"exp3\" or another one that asks one"));
  }
  options.fallback = fallback.name;
  const auto own = std::make_shared<const OwnPolicy>(std::move(options), std::move(fallback.policy));
  return NamedPolicy{.name = name, .policy = own, .own = own, .asks_several = own->options().combines};
}

Result<NamedPolicy> read_policy_at(std::string_view key, const toml::table& table, const std::string& file,
                                   const std::vector<std::string>& models) {
  static const toml::table kNoOptions;
  TomlReader reader(table, file);
  NamedPolicy read;
  std::optional<TomlReader> options;
  if (table.contains(key) && table.get(key)->is_table()) {
    options = reader.table(key);
    options->text("name", read.name);
    if (read.name.empty()) options->fail("name", "is missing: the policy's, such as \"exp3\"");
  } else {
    reader.text(key, read.name);
    if (read.name.empty()) reader.fail(key, "is missing, such as policy = \"exp3\"");
    options.emplace(kNoOptions, file);
  }
  if (reader.ok() && options->ok() && read.name.ends_with(".py")) {
    const toml::table* given = table.get(key)->as_table();
    return read_own_policy(given == nullptr ? kNoOptions : *given, *options, file, read.name, models);
  }
  const Result<RegisteredSelectionPolicy> found = find_selection_policy(read.name);
  if (reader.ok() && options->ok() && !found.ok()) reader.fail(key, "is wrong: " + found.status().message());
  if (found.ok()) {
    read.policy = found->make({models, *options});
    read.asks_several = found->asks_several;
  }
  if (!reader.ok()) {
    for (const auto& [other, value] : table) reader.leave(other.str());
    return reader.finish();
  }
  FOLIOT_RETURN_IF_ERROR(options->finish());
  return read;
}

}  // namespace

Result<NamedPolicy> read_policy(const toml::table& table, const std::string& file,
                                const std::vector<std::string>& models) {
  return read_policy_at("policy", table, file, models);
}

std::string Application::caution() const {
  const std::string why = status.ok() ? policy->caution() : "";
  return why.empty() ? "" : fmt::format("application '{}' may not find its best model: {}", name, why);
}

std::string Application::learns_as() const {
  std::string text = policy_name;
  if (own != nullptr) text += "\n" + own->options().content + "\n" + own->options().fallback;
  for (const std::string& model : models) text += "\n" + model;
  return text;
}

Application read_application(const std::string& name, const fs::path& file) {
  Application application;
  application.name = name;
  application.status = check_folder(file.parent_path());
  if (!application.status.ok()) return application;
  const Result<toml::table> table = read_toml_file(file);
  if (table.ok()) application.content = content_hash(*table);
  application.status = table.ok() ? read_table(*table, file, application) : table.status();
  return application;
}

Result<std::vector<Application>> scan_applications(const fs::path& repository) {
  std::vector<Application> applications;
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, list_repository(repository));
  for (const fs::path& entry : entries) {
    const std::string name = entry.filename().string();
    const fs::path file = entry / kApplicationFile;
    std::error_code ignored;
    if (name.starts_with('.') || !fs::is_regular_file(file, ignored)) continue;
    applications.push_back(read_application(name, file));
  }
  return applications;
}

}  // namespace foliot
