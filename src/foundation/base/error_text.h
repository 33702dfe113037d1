// error_text(): what a number in errno means.
#ifndef FOLIOT_FOUNDATION_BASE_ERROR_TEXT_H_
#define FOLIOT_FOUNDATION_BASE_ERROR_TEXT_H_

#include <string>

namespace foliot {

// "No such file or directory" for ENOENT. Any thread, unlike std::strerror(), whose
// text another thread's call may replace.
std::string error_text(int error);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_ERROR_TEXT_H_
