// Descriptor: a file descriptor that closes itself.
#ifndef FOLIOT_FOUNDATION_PLATFORM_DESCRIPTOR_H_
#define FOLIOT_FOUNDATION_PLATFORM_DESCRIPTOR_H_

#include <utility>

namespace foliot {

// Threading: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  void close() { *this = Descriptor(); }
  // It is no longer closed by itself.
  void release() { number_ = -1; }

 private:
  int number_ = -1;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_DESCRIPTOR_H_
