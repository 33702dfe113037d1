// Completion says what can stand at a place of a command line: for `foliot completion`, and for shells that ask it.
#ifndef FOLIOT_APP_COMMANDS_COMPLETION_H_
#define FOLIOT_APP_COMMANDS_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace foliot {

struct Candidate {
  std::string word;
  std::string description;  // one line; empty: none
};

// The long names of a command's flags, without their dashes, and the commands of a program, or of a command that has
// some; hidden ones not.
std::vector<Candidate> flags_of(const CLI::App& command);
std::vector<Candidate> commands_of(const CLI::App& command);

// Returns what begins with the last of `words`, which stand behind the program's name: commands, flags, or values of
// the flag before it, in the order of the help. Nothing where a file, a number or a name of the user's own is wanted.
std::vector<Candidate> completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_COMPLETION_H_
