// Checks of attributes that are lists, with errors that name the list, its length and what
// the length should be.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_ATTRIBUTE_CHECK_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_ATTRIBUTE_CHECK_H_

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "foundation/base/status.h"

namespace foliot {

template <typename... Arguments>
Status invalid(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return Status::invalid_argument(fmt::format(format, std::forward<Arguments>(arguments)...));
}

// `why` ends the sentence: "for 12 features".
inline Status check_value_count(std::string_view name, size_t length, size_t needed, std::string_view why) {
  if (length == needed) return {};
  return invalid("attribute '{}' has {} values instead of {}, {}", name, length, needed, why);
}

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_ATTRIBUTE_CHECK_H_
