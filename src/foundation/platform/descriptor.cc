#include "foundation/platform/descriptor.h"

#include <unistd.h>

namespace foliot {

Descriptor::~Descriptor() {
  if (is_open()) ::close(number_);
}

}  // namespace foliot
