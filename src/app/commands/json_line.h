// JSON lines: what commands that list print with --json, an object in each line. Text that is no UTF-8 has U+FFFD in
// place of what is wrong.
#ifndef FOLIOT_APP_COMMANDS_JSON_LINE_H_
#define FOLIOT_APP_COMMANDS_JSON_LINE_H_

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace foliot {

inline void print_json_line(const nlohmann::ordered_json& object) {
  fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_JSON_LINE_H_
