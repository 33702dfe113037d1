// Flags of the log, and where it goes: standard error.
#ifndef FOLIOT_APP_COMMANDS_JOURNAL_FLAGS_H_
#define FOLIOT_APP_COMMANDS_JOURNAL_FLAGS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "journal/journal.h"

namespace foliot {

// Told what happens in a part, from any of its threads.
using JournalFunction = std::function<void(Severity, const std::string&)>;

void add_journal_flags(CLI::App& app, JournalOptions& options);
JournalSink standard_error();

// What is said to a person who started a part: a line on standard output, or, where a
// program reads what is said, the log's.
void say(Journal& log, const std::string& line);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_JOURNAL_FLAGS_H_
