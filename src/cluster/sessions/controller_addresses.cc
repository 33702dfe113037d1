#include "cluster/sessions/controller_addresses.h"

#include <algorithm>

namespace foliot {

Status keep_controllers(LinkControl& loop, const std::string& addresses) {
  for (size_t begin = 0; begin <= addresses.size();) {
    const size_t comma = std::min(addresses.find(',', begin), addresses.size());
    FOLIOT_RETURN_IF_ERROR(loop.keep(addresses.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return Status();
}

}  // namespace foliot
