// HelpFormatter: the layout of `--help`: flags in groups, types and defaults in
// the form in which they are typed, descriptions wrapped.
#ifndef FOLIOT_APP_COMMANDS_HELP_FORMATTER_H_
#define FOLIOT_APP_COMMANDS_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foliot {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  // Never with two empty lines in a row. Flags that are rarely set are left out, and counted, but for
  // AppFormatMode::All.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  // The first line of its description.
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  // CLI11 passes the mode to make_help() alone, and calls make_group() from there.
  mutable bool shows_all_ = false;
  mutable size_t left_out_ = 0;
};

// The values that an option takes, where they are a set: those of CLI11's "{json->1,text->0}" or "{grpc,http}".
std::vector<std::string> choices_of(const CLI::Option& option);

// While it lives, flags that are added to `app` stand in this group of its help.
class FlagGroup {
 public:
  FlagGroup(CLI::App& app, const std::string& name);
  ~FlagGroup();
  FlagGroup(const FlagGroup&) = delete;
  FlagGroup& operator=(const FlagGroup&) = delete;

 private:
  CLI::App& app_;
  std::string before_;
};

// Moves these flags of a command to groups that only `--help-all` shows, which it gives the command: flags whose
// defaults suit nearly all servers, since they are limits or are measured.
// REQUIRES: the command has them.
void set_rarely_set(CLI::App& app, const std::vector<std::string>& flags);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_HELP_FORMATTER_H_
