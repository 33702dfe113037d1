#include "cluster/sessions/obeyed_epoch.h"

#include <fmt/format.h>

namespace foliot {

Status ObeyedEpoch::obey(uint64_t epoch, const std::string* obeyed) {
  if (epoch < value_) {
    return Status::unavailable(
        fmt::format("it leads with epoch {}, and one that leads with epoch {} was obeyed", epoch, value_));
  }
  if (obeyed != nullptr && epoch == value_) {
    return Status::unavailable(
        epoch == 0 ? fmt::format("the controller at {} leads, too; start both with --election", *obeyed)
                   : fmt::format("it leads with epoch {}, as the controller at {} does", epoch, *obeyed));
  }
  value_ = epoch;
  return Status();
}

}  // namespace foliot
