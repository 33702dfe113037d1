// UsageError: what is wrong with a command line, in one line, with the command or flag that was
// probably meant.
#ifndef FOLIOT_APP_COMMANDS_USAGE_ERROR_H_
#define FOLIOT_APP_COMMANDS_USAGE_ERROR_H_

#include <CLI/CLI.hpp>
#include <string>

namespace foliot {

// "foliot serve: there is no flag '--pag-cache'; did you mean '--page-cache'? `foliot serve --help` lists them".
// `error` is what parsing by `app` ended with.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_USAGE_ERROR_H_
