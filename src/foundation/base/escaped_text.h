// Escaped text: bytes from outside in the form in which a log and a terminal may show
// them: printable, on one line, valid UTF-8, and reversible.
#ifndef FOLIOT_FOUNDATION_BASE_ESCAPED_TEXT_H_
#define FOLIOT_FOUNDATION_BASE_ESCAPED_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace foliot {

// A backslash becomes two. Bytes of control characters, of characters that turn the
// direction of writing or end a line, and of what is no UTF-8 become \xHH each.
std::string escaped(std::string_view text);
// What escaped() was given; nullopt: it did not make this.
std::optional<std::string> unescaped(std::string_view text);
// escaped(), in single quotes, with those in it behind a backslash.
std::string in_quotes(std::string_view text);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_ESCAPED_TEXT_H_
