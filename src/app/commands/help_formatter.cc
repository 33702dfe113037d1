#include "app/commands/help_formatter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

namespace foliot {
namespace {

constexpr size_t kHelpColumn = 32;  // where descriptions begin
constexpr size_t kHelpWidth = 110;

// CLI11 writes a type as TYPE or TYPE:CHECK, where the check of a set is {...}.
std::string shown_type(const CLI::Option* option) {
  static const std::map<std::string, std::string, std::less<>> kTypes{
      {"UINT", "N"}, {"INT", "N"}, {"FLOAT", "NUMBER"}, {"BOOLEAN", "true|false"}};
  const std::string full = option->get_type_name();
  if (const std::vector<std::string> choices = choices_of(*option); !choices.empty()) {
    return fmt::format("{}", fmt::join(choices, "|"));
  }
  const size_t colon = full.find(':');
  const std::string type = full.substr(0, colon);
  if (const auto known = kTypes.find(type); known != kTypes.end()) return known->second;
  return type == "TEXT" && colon != std::string::npos ? full.substr(colon + 1) : full;
}

// "1 to 1024" for the type "UINT:INT in [1 - 1024]"; empty without limits.
std::string shown_range(const CLI::Option* option) {
  const std::string type = option->get_type_name();
  const size_t open = type.find("in ["), dash = type.find(" - ");
  if (open == std::string::npos || dash == std::string::npos) return {};
  return fmt::format("{} to {}", type.substr(open + 4, dash - open - 4),
                     type.substr(dash + 3, type.find(']') - dash - 3));
}

std::string shown_default(const CLI::Option* option) {
  std::string value = option->get_default_str();
  if (option->get_type_name() == "BOOLEAN") return value == "1" ? "true" : "false";
  if (value.size() >= 2 && value.front() == '[' && value.back() == ']') value = value.substr(1, value.size() - 2);
  return value;
}

// Appends `text` in lines of kHelpWidth that begin at kHelpColumn, the first one at `column`.
void append_wrapped(std::string& to, size_t column, const std::string& text) {
  std::istringstream words(text);
  const auto begin_line = [&] {
    to.append(column < kHelpColumn ? kHelpColumn - column : 0, ' ');
    column = kHelpColumn;
  };
  begin_line();
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && column + 1 + word.size() > kHelpWidth) {
      to += '\n';
      column = 0;
      begin_line();
    } else if (!first) {
      to += ' ';
      ++column;
    }
    to += word;
    column += word.size();
  }
  to += '\n';
}

// Ends the name of a group of flags that are rarely set.
constexpr std::string_view kRarelySet = ", rarely set";

bool is_rarely_set(const std::string& group) { return std::string_view(group).ends_with(kRarelySet); }

}  // namespace

std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> choices;
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  if (open == std::string::npos) return choices;
  std::istringstream entries{type.substr(open + 1, type.find('}', open) - open - 1)};
  for (std::string entry; std::getline(entries, entry, ',');) choices.push_back(entry.substr(0, entry.find("->")));
  return choices;
}

HelpFormatter::HelpFormatter() {
  column_width(kHelpColumn);
  label("REQUIRED", "(required)");
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  shows_all_ = mode == CLI::AppFormatMode::All;
  left_out_ = 0;
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  if (left_out_ > 0) {
    const size_t footer = app->get_footer().empty() ? text.size() : text.rfind(app->get_footer());
    text.insert(footer, fmt::format("{} more flags are rarely set: --help-all shows them.\n\n", left_out_));
  }
  for (size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at)) text.erase(at, 1);
  return text;
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  if (shows_all_ || !is_rarely_set(group)) {
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }
  left_out_ += options.size();
  return {};
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return {};
  std::string text = " " + shown_type(option);
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
  return text;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (const std::string range = shown_range(option); !range.empty()) text += fmt::format(" ({})", range);
  if (option->get_required()) text += " " + get_label("REQUIRED");
  if (option->get_type_size() != 0 && !option->get_default_str().empty()) {
    text += fmt::format(" [{}]", shown_default(option));
  }
  return text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string text = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  size_t column = text.size();
  if (column + 2 > kHelpColumn) {
    text += '\n';
    column = 0;
  }
  append_wrapped(text, column, make_option_desc(option));
  return text;
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  const std::string description = command->get_description();
  std::string text = "  " + command->get_name();
  append_wrapped(text, text.size(), description.substr(0, description.find('\n')));
  return text;
}

FlagGroup::FlagGroup(CLI::App& app, const std::string& name) : app_(app), before_(app.option_defaults()->get_group()) {
  app.option_defaults()->group(name);
}

void set_rarely_set(CLI::App& app, const std::vector<std::string>& flags) {
  app.set_help_all_flag("--help-all", "Print all flags, those that are rarely set as well, and exit");
  for (const std::string& flag : flags) {
    CLI::Option* const option = app.get_option(flag);
    option->group(option->get_group() + std::string(kRarelySet));
  }
}

FlagGroup::~FlagGroup() { app_.option_defaults()->group(before_); }

}  // namespace foliot
