#include "app/version.h"

#include "app/commit.h"

namespace foliot {

std::string version_text() { return "foliot " FOLIOT_VERSION " (commit " FOLIOT_COMMIT ")"; }

}  // namespace foliot
