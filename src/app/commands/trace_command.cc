#include "app/commands/trace_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "observe/request_log/log.h"
#include "observe/request_log/perfetto.h"

namespace foliot {
namespace {

struct ExportFlags {
  std::filesystem::path log;
  std::filesystem::path output = "trace.json";
};

Status export_log(const ExportFlags& flags) {
  FOLIOT_ASSIGN_OR_RETURN(const Log log, Log::read(flags.log));
  for (const std::string& gap : log.gaps()) fmt::print(stderr, "note: {}\n", gap);
  std::ofstream file(flags.output);
  if (file) write_perfetto(log, file);
  file.close();
  if (!file) return Status::invalid_argument(fmt::format("cannot write {}", flags.output.string()));
  fmt::print("{}: {} requests and {} actions; open it in ui.perfetto.dev\n", flags.output.string(),
             log.requests().size(), log.actions().size());
  return Status();
}

}  // namespace

void add_trace_command(CLI::App& app, int& exit_code) {
  CLI::App* trace = app.add_subcommand("trace", "Export a log as a timeline");
  trace->require_subcommand(1);
  CLI::App* command = trace->add_subcommand("export", "Write a log in the Chrome trace event format, for Perfetto");
  const auto flags = std::make_shared<ExportFlags>();
  command->add_option("log", flags->log, "folder that --log of `foliot serve`, `controller` or `worker` wrote")
      ->type_name("FOLDER")
      ->required();
  command->add_option("-o,--output", flags->output, "the file to write")->capture_default_str();
  command->callback([flags, &exit_code] {
    const Status status = export_log(*flags);
    if (!status.ok()) fmt::print(stderr, "foliot trace: {}\n", status.message());
    exit_code = status.ok() ? 0 : 1;
  });
}

}  // namespace foliot
