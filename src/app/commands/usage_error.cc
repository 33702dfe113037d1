#include "app/commands/usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "app/commands/completion.h"
#include "app/commands/help_formatter.h"

namespace foliot {
namespace {

// Of characters that are inserted, left out, replaced, or swapped with their neighbour.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last.back();
}

// The name that was probably meant; empty: none is near.
std::string nearest(const std::string& typed, const std::vector<Candidate>& names) {
  constexpr size_t kPrefixMin = 3;
  std::string best;
  size_t best_distance = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const auto& [name, description] : names) {
    const size_t distance = edit_distance(typed, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  if (!best.empty() || typed.size() < kPrefixMin) return best;
  const auto longer = std::ranges::find_if(names, [&](const Candidate& each) { return each.word.starts_with(typed); });
  return longer == names.end() ? best : longer->word;
}

std::string unexpected(const CLI::App& command, const std::string& typed) {
  if (typed.starts_with("--")) {
    const std::string name = typed.substr(2, typed.find('=') - 2);
    const std::string meant = nearest(name, flags_of(command));
    return fmt::format("there is no flag '--{}'{}", name,
                       meant.empty() ? "" : fmt::format("; did you mean '--{}'?", meant));
  }
  if (typed.starts_with("-")) return fmt::format("there is no flag '{}'", typed);
  if (command.get_subcommands({}).empty()) return fmt::format("'{}' is one argument too many", typed);
  const std::string meant = nearest(typed, commands_of(command));
  return fmt::format("there is no command '{}'{}", typed,
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

// Of "NAME: ...", where NAME has a set of values and another was given. Empty: it is something else.
std::string unknown_choice(const CLI::App& command, const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  const CLI::Option* const option = command.get_option_no_throw(name);
  if (option == nullptr || option->results().empty()) return {};
  const std::vector<std::string> choices = choices_of(*option);
  const std::string& typed = option->results().back();
  if (choices.empty() || std::ranges::find(choices, typed) != choices.end()) return {};
  std::vector<Candidate> names;
  for (const std::string& choice : choices) names.push_back({choice, {}});
  const std::string meant = nearest(typed, names);
  return fmt::format("{}: '{}' is none of {}{}", name, typed, fmt::join(choices, ", "),
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

// Of "Could not convert: NAME = VALUE", as CLI11 has it.
std::string unreadable_number(const std::string& text) {
  const size_t begin = text.find(": "), equals = text.find(" = ");
  if (begin == std::string::npos || equals == std::string::npos) return text;
  const std::string name = text.substr(begin + 2, equals - begin - 2);
  return fmt::format("{}: '{}' is no number that it can have{}", name, text.substr(equals + 3),
                     name.ends_with("-port") ? "; give a port from 0 to 65535" : "");
}

std::string what_is_wrong(const CLI::App& command, const CLI::ParseError& error) {
  const std::vector<std::string> extras = command.remaining();
  if (!extras.empty()) return unexpected(command, extras.front());
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && text.ends_with(" missing")) {
    return text.substr(0, text.find(':')) + " has no value";
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return unreadable_number(text);
  if (const std::string choice = unknown_choice(command, text); !choice.empty()) return choice;
  return text == "A subcommand is required" ? "a command is missing" : text;
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string name = app.get_name();
  const CLI::App* command = &app;
  // What a command does not know may be followed by what is the name of another: foliot serv models.
  while (command->remaining().empty() && !command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  const std::string wrong = what_is_wrong(*command, error);
  return fmt::format("{}: {}{} `{} --help` has the usage", name, wrong, wrong.ends_with('?') ? "" : ";", name);
}

}  // namespace foliot
