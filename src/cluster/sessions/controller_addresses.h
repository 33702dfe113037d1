// keep_controllers(): links with each of several controllers.
#ifndef FOLIOT_CLUSTER_SESSIONS_CONTROLLER_ADDRESSES_H_
#define FOLIOT_CLUSTER_SESSIONS_CONTROLLER_ADDRESSES_H_

#include <string>

#include "cluster/transport/link_handler.h"
#include "foundation/base/status.h"

namespace foliot {

// `addresses`: HOST:PORT of each, with commas between them. Errors: kInvalidArgument naming what is none.
Status keep_controllers(LinkControl& loop, const std::string& addresses);

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_CONTROLLER_ADDRESSES_H_
