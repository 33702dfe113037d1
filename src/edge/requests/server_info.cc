#include "edge/requests/server_info.h"

namespace foliot {

std::string_view server_version() { return FOLIOT_VERSION; }

std::string info_metrics(std::string_view part, std::string_view policy) {
  std::string text =
      "# HELP foliot_info 1, with the version and, of a controller, the scheduling policy\n"
      "# TYPE foliot_info gauge\n"
      "foliot_info{part=\"";
  text.append(part).append("\",version=\"").append(server_version());
  if (!policy.empty()) text.append("\",policy=\"").append(policy);
  return text + "\"} 1\n";
}

}  // namespace foliot
