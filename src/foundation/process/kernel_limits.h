// KernelLimits: a lesser kernel than this one, for tests: what confinement then does without.
//
// Threading: none.
#ifndef FOLIOT_FOUNDATION_PROCESS_KERNEL_LIMITS_H_
#define FOLIOT_FOUNDATION_PROCESS_KERNEL_LIMITS_H_

#include <limits>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

struct KernelLimits {
  int landlock = std::numeric_limits<int>::max();  // at most this version of its interface; 0: none
  bool namespaces = true;
  bool ids = true;  // root may become another user

  bool operator==(const KernelLimits&) const = default;
};

// "landlock=3,namespaces=no,ids=no": each once at most; what is left out is this kernel's; empty: all of it.
std::string to_string(const KernelLimits& limits);
// Errors: kInvalidArgument naming the part that is wrong, and the form.
Result<KernelLimits> parse_kernel_limits(std::string_view text);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_KERNEL_LIMITS_H_
