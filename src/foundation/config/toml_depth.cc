#include "foundation/config/toml_depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace foliot {
namespace {

// The index behind the string that begins at `start`, of one line or several; the end of `text` if it has no end.
size_t end_of_toml_string(std::string_view text, size_t start) {
  const char quote = text[start];
  const std::string three(3, quote);
  const std::string_view delimiter = text.substr(start).starts_with(three) ? three : std::string_view(three).substr(2);
  size_t i = start + delimiter.size();
  while (i < text.size() && !text.substr(i).starts_with(delimiter)) {
    // One of one line that has no end ends with it: what follows is counted all the same.
    if (delimiter.size() == 1 && text[i] == '\n') return i;
    i += quote == '"' && text[i] == '\\' ? 2 : 1;
  }
  return std::min(i + delimiter.size(), text.size());
}

bool is_part_of_key(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

}  // namespace

Status check_toml_depth(std::string_view text, const std::string& file) {
  size_t dots = 0;  // since something that no key has in it
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_toml_string(text, i);
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '.') ++dots;
    if (c != '.' && c != ' ' && c != '\t' && !is_part_of_key(c)) dots = 0;
    if (dots >= kTomlKeyPartsMax) {
      return Status::invalid_argument(fmt::format("{}:{}: a key of more than {} parts", file,
                                                  1 + std::ranges::count(text.substr(0, i), '\n'), kTomlKeyPartsMax));
    }
    ++i;
  }
  return Status();
}

}  // namespace foliot
