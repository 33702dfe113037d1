// Keys and texts as TOML writes them.
#ifndef FOLIOT_FOUNDATION_BASE_TOML_TEXT_H_
#define FOLIOT_FOUNDATION_BASE_TOML_TEXT_H_

#include <span>
#include <string>
#include <string_view>

namespace foliot {

// A key: quoted where it must be. REQUIRES, as of all texts: UTF-8.
std::string toml_key(std::string_view name);
// A text, quoted.
std::string toml_text(std::string_view text);
// A list of texts: ["a", "b"].
std::string toml_texts(std::span<const std::string> texts);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_TOML_TEXT_H_
