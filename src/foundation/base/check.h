// FOLIOT_CHECK(condition): an assertion that is kept in release builds. A violated one
// is a bug: it prints where and stops the process.
#ifndef FOLIOT_FOUNDATION_BASE_CHECK_H_
#define FOLIOT_FOUNDATION_BASE_CHECK_H_

namespace foliot {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace foliot

#define FOLIOT_CHECK(condition)                                             \
  (__builtin_expect(static_cast<bool>(condition), 1) ? static_cast<void>(0) \
                                                     : ::foliot::check_failed(#condition, __FILE__, __LINE__))

#endif  // FOLIOT_FOUNDATION_BASE_CHECK_H_
