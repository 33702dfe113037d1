#include "edge/requests/server_info.h"

namespace foliot {

std::string_view server_version() { return FOLIOT_VERSION; }

}  // namespace foliot
