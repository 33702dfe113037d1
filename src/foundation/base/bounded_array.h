// BoundedArray: up to kCapacity items in place. Adding allocates nothing, and copying costs what
// is in it, not what could be.
//
// Threading: as a value.
#ifndef FOLIOT_FOUNDATION_BASE_BOUNDED_ARRAY_H_
#define FOLIOT_FOUNDATION_BASE_BOUNDED_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "foundation/base/check.h"

namespace foliot {

template <typename T, uint32_t kCapacity>
class BoundedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  BoundedArray() {}
  BoundedArray(const BoundedArray& other) { *this = other; }
  BoundedArray& operator=(const BoundedArray& other) {
    size_ = other.size_;
    std::copy_n(other.items_, size_, items_);
    return *this;
  }
  ~BoundedArray() = default;

  // REQUIRES: fewer than kCapacity are in it.
  void add(const T& item) {
    FOLIOT_CHECK(size_ < kCapacity);
    items_[size_++] = item;
  }
  void clear() { size_ = 0; }
  uint32_t size() const { return size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  const T& operator[](uint32_t i) const {
    FOLIOT_CHECK(i < size_);
    return items_[i];
  }
  T& operator[](uint32_t i) {
    FOLIOT_CHECK(i < size_);
    return items_[i];
  }

 private:
  uint32_t size_ = 0;
  union {  // what is not used is not initialised
    T items_[kCapacity];
  };
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_BOUNDED_ARRAY_H_
