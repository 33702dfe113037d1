#include "app/commands/init_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "app/commands/part_flags.h"
#include "app/commands/progress_bar.h"
#include "engine/device/cpu/cpu_device.h"
#include "models/repository/model_config.h"
#include "models/repository/model_template.h"

namespace foliot {
namespace {

struct InitFlags {
  std::filesystem::path model;
  bool print = false;
  bool force = false;
};

Status write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  return stream ? Status() : Status::internal(fmt::format("cannot write {}", file.string()));
}

// Returns the exit code.
Result<int> init(const InitFlags& flags) {
  const std::filesystem::path file = config_file_of(flags.model);
  std::error_code error;
  if (!flags.print && !flags.force && std::filesystem::exists(file, error)) {
    return Status::invalid_argument(
        fmt::format("{} exists; --force overwrites it, --print shows what would be written", file.string()));
  }
  const uint32_t threads = default_threads();
  ProgressBar bar;
  const auto made = make_model_template(
      flags.model, [&] { return make_cpu_device({.threads = threads}); },
      [&](const std::string& step) { bar.show(flags.model.string(), step, 0); });
  bar.clear();
  if (!made.ok()) return made.status();
  if (flags.print) {
    fmt::print("{}", made->text);
  } else {
    FOLIOT_RETURN_IF_ERROR(write_text(file, made->text));
    fmt::print("{}\n", file.string());
  }
  if (made->compiled.ok()) return 0;
  fmt::print(stderr, "warning: the model does not compile with these settings: {}\n", made->compiled.message());
  return 1;
}

}  // namespace

void add_init_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("init", "Write a commented model.toml for an ONNX model");
  command->footer(
      "Serving needs no model.toml, unless the model has variable dimensions besides the batch (lengths of\n"
      "sequences, sizes of images): these need sizes to compile for. `foliot init` finds them, tries which\n"
      "sizes go, and writes a model.toml beside the model (or beside the folder of its version) that\n"
      "explains every setting. Edit it and see what it costs:\n\n"
      "  foliot init models/bert/model.onnx\n"
      "  foliot compile models/bert/model.onnx --report\n\n"
      "The exit code is 1 if the model does not compile with what was written; the reason is printed.");
  auto flags = std::make_shared<InitFlags>();
  command->add_option("model", flags->model, "the .onnx file")->required();
  command->add_flag("--print", flags->print, "print it instead of writing the file");
  command->add_flag("--force", flags->force, "overwrite a model.toml that exists");
  command->callback([flags, &exit_code] {
    const Result<int> result = init(*flags);
    if (!result.ok()) fmt::print(stderr, "foliot init: {}\n", result.status().message());
    exit_code = result.ok() ? *result : 1;
  });
}

}  // namespace foliot
