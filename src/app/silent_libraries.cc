#include "app/silent_libraries.h"

#include <google/protobuf/stubs/logging.h>

#include <cstdlib>

namespace foliot {

void silence_libraries() {
  google::protobuf::SetLogHandler(nullptr);
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
}

}  // namespace foliot
