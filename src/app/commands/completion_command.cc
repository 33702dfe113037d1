#include "app/commands/completion_command.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/completion.h"

namespace foliot {
namespace {

// Each asks this program for what can stand where the cursor is, and completes files where nothing is known.
constexpr std::string_view kBash = R"(_foliot() {
  local IFS=$'\n'
  COMPREPLY=($(foliot completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _foliot foliot
)";

constexpr std::string_view kZsh = R"(#compdef foliot
_foliot() {
  local line; local -a found
  for line in "${(@f)$(foliot completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe foliot found; else _files; fi
}
if [[ $funcstack[1] == _foliot ]]; then _foliot "$@"; else compdef _foliot foliot; fi
)";

constexpr std::string_view kFish = R"(function __foliot_words
  set -l words (commandline -opc) (commandline -ct)
  foliot completion words -- $words[2..-1] 2>/dev/null
end
complete -c foliot -f -n 'test (count (__foliot_words)) -gt 0' -a '(__foliot_words)'
)";

struct CompletionFlags {
  std::string shell;
  std::vector<std::string> words;
};

}  // namespace

void add_completion_command(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("completion", "Print what makes a shell complete commands, flags and values");
  auto flags = std::make_shared<CompletionFlags>();
  const std::map<std::string, std::string_view> scripts{{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  command->add_option("shell", flags->shell, "the shell; words: what can stand for the last of the words behind --")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "words"}));
  command->add_option("words", flags->words, "a command line without the program, for `words`");
  command->footer(
      "  source <(foliot completion bash)       # in ~/.bashrc\n"
      "  source <(foliot completion zsh)        # in ~/.zshrc, after compinit\n"
      "  foliot completion fish | source        # in ~/.config/fish/config.fish");
  command->callback([&app, flags, scripts] {
    if (const auto script = scripts.find(flags->shell); script != scripts.end()) {
      fmt::print("{}", script->second);
      return;
    }
    for (const Candidate& each : completions(app, flags->words)) fmt::print("{}\t{}\n", each.word, each.description);
  });
}

}  // namespace foliot
