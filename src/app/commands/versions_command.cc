#include "app/commands/versions_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/commands/exit_code.h"
#include "app/commands/server_call.h"
#include "foundation/base/time.h"

namespace foliot {
namespace {

using VersionsJson = nlohmann::ordered_json;

// Weights of all users are made anew before a version is served.
constexpr Duration kTakeTimeout = Duration::seconds(3600);

struct VersionsFlags {
  ServerPlace server;
  std::string model;
  std::string compare;
  std::string take;
  bool force = false;
  bool roll_back = false;
  bool json = false;
};

std::string path_of(const VersionsFlags& flags, const std::string& what) {
  return "/v2/repository/models/" + flags.model + "/" + what;
}

Status load(const VersionsFlags& flags, const VersionsJson& parameters) {
  return ask_server(flags.server, {.method = "POST",
                                   .path = path_of(flags, "load"),
                                   .body = VersionsJson{{"parameters", parameters}}.dump(
                                       -1, ' ', false, VersionsJson::error_handler_t::replace),
                                   .timeout = kTakeTimeout})
      .status();
}

void print_version(const VersionsJson& version) {
  std::string loss, beside, observations, users;
  if (const auto compared = version.find("comparison"); compared != version.end()) {
    loss = fmt::format("{:.4g}", compared->at("loss").get<double>());
    beside =
        fmt::format("{:.4g} of {}", compared->at("loss_with").get<double>(), compared->at("with").get<std::string>());
    observations = compared->at("observations").dump();
    users = compared->at("users").dump();
  }
  fmt::print("{:>7}  {:<10}  {:>8}  {:<16}  {:>12}  {:>6}  {}\n", version.at("version").get<std::string>(),
             version.at("state").get<std::string>(), loss, beside, observations, users,
             version.at("reason").get<std::string>());
}

// `only`: of this version; empty: of all.
Result<int> print_versions(const VersionsFlags& flags, const std::string& only) {
  FOLIOT_ASSIGN_OR_RETURN(const std::string answer, ask_server(flags.server, {.path = path_of(flags, "versions")}));
  if (flags.json) fmt::print("{}\n", answer);
  try {
    const VersionsJson list = VersionsJson::parse(answer);
    if (!flags.json) {
      fmt::print("{:>7}  {:<10}  {:>8}  {:<16}  {:>12}  {:>6}  {}\n", "VERSION", "STATE", "LOSS", "BESIDE",
                 "OBSERVATIONS", "USERS", "REASON");
    }
    int exit_code = 0;
    for (const VersionsJson& version : list.at("versions")) {
      if (!only.empty() && version.at("version") != only) continue;
      if (!flags.json) print_version(version);
      if (!only.empty() && version.at("reason") != "") exit_code = kExitFailed;
    }
    if (!flags.json && only.empty() && list.at("chosen") == true) {
      fmt::print(
          "version {} was taken by an operator: others are taken when they are newer than those that were there\n",
          list.at("served").get<std::string>());
    }
    return exit_code;
  } catch (const VersionsJson::exception&) {
    return Status::internal("the server's answer is no list of versions");
  }
}

Result<int> run(const VersionsFlags& flags) {
  Status status;
  if (!flags.compare.empty()) status = load(flags, {{"version", flags.compare}, {"take", false}});
  if (!flags.take.empty()) status = load(flags, {{"version", flags.take}, {"compare", !flags.force}});
  if (flags.roll_back) status = load(flags, {{"roll_back", true}});
  if (!status.ok()) return status;
  return print_versions(flags, flags.compare);
}

}  // namespace

void add_versions_command(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("versions", "List the versions of a personal model, compare, take and roll back");
  command->footer(
      "Losses are those of the last comparison, of the version and of the one that was served then (BESIDE), on what\n"
      "is withheld from trainers. The key needs the scope admin. What is taken stays, also after a restart, until\n"
      "there is a newer version.\n\n"
      "  foliot versions films\n"
      "  foliot versions films --compare 3    # exit code 1: it would not be taken\n"
      "  foliot versions films --take 3 --force\n"
      "  foliot versions films --roll-back");
  auto flags = std::make_shared<VersionsFlags>();
  command->add_option("model", flags->model, "name of the personal model")->required();
  add_server_flags(*command, flags->server);
  auto* const compare =
      command
          ->add_option("--compare", flags->compare, "compare this version with the one that is served, and take none")
          ->type_name("VERSION");
  auto* const take = command->add_option("--take", flags->take, "serve this version if it is better")
                         ->type_name("VERSION")
                         ->excludes(compare);
  command->add_flag("--force", flags->force, "without a comparison")->needs(take);
  command->add_flag("--roll-back", flags->roll_back, "serve the version before, which is not compared")
      ->excludes(compare)
      ->excludes(take);
  command->add_flag("--json", flags->json, "print what the server answers");
  command->callback([flags, &exit_code] {
    const Result<int> result = run(*flags);
    if (!result.ok()) fmt::print(stderr, "foliot versions: {}\n", result.status().message());
    exit_code = result.ok() ? *result : kExitFailed;
  });
}

}  // namespace foliot
