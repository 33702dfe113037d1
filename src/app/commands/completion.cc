#include "app/commands/completion.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "app/commands/help_formatter.h"

namespace foliot {
namespace {

bool takes_value(const CLI::Option& option) { return option.get_type_size() != 0; }

const CLI::Option* flag_named(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("-") || word.find('=') != std::string::npos) return nullptr;
  return command.get_option_no_throw(word);
}

const CLI::App* command_named(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == word) return command;
  }
  return nullptr;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::vector<Candidate> values_of(const CLI::Option& option) {
  std::vector<Candidate> values;
  for (const std::string& choice : choices_of(option)) values.push_back({choice, {}});
  return values;
}

// Positional arguments are taken as any of those that have a set of values.
std::vector<Candidate> positionals_of(const CLI::App& command) {
  std::vector<Candidate> values;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::vector<Candidate> more = values_of(*option);
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

std::vector<Candidate> candidates(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  const CLI::Option* awaiting = nullptr;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (awaiting != nullptr) {
      awaiting = nullptr;
      continue;
    }
    if (i == 0 && words[i] == "help" && words.size() == 2) return commands_of(app);
    const CLI::Option* const flag = flag_named(*command, words[i]);
    if (flag != nullptr && takes_value(*flag)) awaiting = flag;
    if (const CLI::App* inner = command_named(*command, words[i])) command = inner;
  }
  if (awaiting != nullptr) return values_of(*awaiting);
  if (words.back().starts_with("-")) {
    std::vector<Candidate> flags = flags_of(*command);
    for (Candidate& flag : flags) flag.word.insert(0, "--");
    return flags;
  }
  return command->get_subcommands({}).empty() ? positionals_of(*command) : commands_of(*command);
}

}  // namespace

std::vector<Candidate> flags_of(const CLI::App& command) {
  std::vector<Candidate> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back({name, first_line(option->get_description())});
    }
  }
  return flags;
}

std::vector<Candidate> commands_of(const CLI::App& app) {
  std::vector<Candidate> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty())
      commands.push_back({command->get_name(), first_line(command->get_description())});
  }
  return commands;
}

std::vector<Candidate> completions(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::vector<Candidate> found = candidates(app, words);
  std::erase_if(found, [&](const Candidate& each) { return !each.word.starts_with(words.back()); });
  return found;
}

}  // namespace foliot
