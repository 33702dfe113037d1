// kSanitized: whether this build has a sanitizer, which reserves terabytes of addresses and makes system calls of its
// own.
#ifndef FOLIOT_FOUNDATION_PROCESS_SANITIZED_H_
#define FOLIOT_FOUNDATION_PROCESS_SANITIZED_H_

namespace foliot {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_SANITIZED_H_
