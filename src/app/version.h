// The version of this program, and the commit that it was built from.
#ifndef FOLIOT_APP_VERSION_H_
#define FOLIOT_APP_VERSION_H_

#include <string>

namespace foliot {

// "foliot 0.2.0 (commit 32d2788908a1)"; with a + behind the commit where files differed from it.
std::string version_text();

}  // namespace foliot

#endif  // FOLIOT_APP_VERSION_H_
