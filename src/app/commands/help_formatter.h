// HelpFormatter: the layout of `--help`: flags in groups, types and defaults in
// the form in which they are typed, descriptions wrapped.
#ifndef FOLIOT_APP_COMMANDS_HELP_FORMATTER_H_
#define FOLIOT_APP_COMMANDS_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <string>

namespace foliot {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  // Never with two empty lines in a row.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  // The first line of its description.
  std::string make_subcommand(const CLI::App* command) const override;
};

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

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_HELP_FORMATTER_H_
