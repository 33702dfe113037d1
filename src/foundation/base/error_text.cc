#include "foundation/base/error_text.h"

#include <array>
#include <cstring>

namespace foliot {

std::string error_text(int error) {
  std::array<char, 128> space{};
  // glibc's own, which returns the text, in `space` only where it had to be composed.
  return ::strerror_r(error, space.data(), space.size());
}

}  // namespace foliot
