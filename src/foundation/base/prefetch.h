// Prefetch: begins to bring memory into the processor's caches before it is read, so that
// reads of several places wait for memory once and not one after the other.
#ifndef FOLIOT_FOUNDATION_BASE_PREFETCH_H_
#define FOLIOT_FOUNDATION_BASE_PREFETCH_H_

#include <cstddef>

namespace foliot {

// The lines of the object; of any address, without effect on what the program does.
template <typename T>
inline void prefetch(const T* object) {
  constexpr size_t kLine = 64;
  const auto* const bytes = reinterpret_cast<const char*>(object);
  for (size_t at = 0; at < sizeof(T); at += kLine) __builtin_prefetch(bytes + at);
}

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_PREFETCH_H_
