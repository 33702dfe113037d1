// Duration and TimePoint: the only two types of time in Foliot.
//
// Both count nanoseconds in 64 bits, some 292 years either way. Arithmetic saturates:
// what would be beyond stays at the end of the range, and the end of TimePoint's is
// infinity. Only a division by zero is a bug. There is deliberately no now(): time comes
// from the loop that runs the code (foundation/platform/event_loop.h or virtual/world/virtual_loop.h) or as
// an argument, so that the same code runs in real and in virtual time.
#ifndef FOLIOT_FOUNDATION_BASE_TIME_H_
#define FOLIOT_FOUNDATION_BASE_TIME_H_

#include <compare>
#include <cstdint>
#include <limits>

namespace foliot {

namespace time_internal {

inline constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

constexpr int64_t add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
    return a < 0 ? kMin : kMax;
  return sum;
}
constexpr int64_t subtract(int64_t a, int64_t b) {
  int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) [[unlikely]]
    return a < 0 ? kMin : kMax;
  return difference;
}
constexpr int64_t multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) [[unlikely]]
    return (a < 0) == (b < 0) ? kMax : kMin;
  return product;
}
// Towards zero; what is not a number is 0.
constexpr int64_t whole(double number) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63, the first that is too large
  if (number >= kEnd) [[unlikely]]
    return kMax;
  if (number >= -kEnd) [[likely]]
    return static_cast<int64_t>(number);
  return number < 0 ? kMin : 0;
}

}  // namespace time_internal

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration nanoseconds(int64_t n) { return Duration(n); }
  static constexpr Duration microseconds(int64_t n) { return Duration(time_internal::multiply(n, 1'000)); }
  static constexpr Duration milliseconds(int64_t n) { return Duration(time_internal::multiply(n, 1'000'000)); }
  static constexpr Duration seconds(int64_t n) { return Duration(time_internal::multiply(n, 1'000'000'000)); }
  static constexpr Duration from_seconds(double s) { return Duration(time_internal::whole(s * 1e9)); }
  static constexpr Duration from_milliseconds(double ms) { return Duration(time_internal::whole(ms * 1e6)); }
  static constexpr Duration max() { return Duration(time_internal::kMax); }

  constexpr int64_t nanoseconds() const { return nanoseconds_; }
  constexpr double to_seconds() const { return static_cast<double>(nanoseconds_) * 1e-9; }
  constexpr double to_milliseconds() const { return static_cast<double>(nanoseconds_) * 1e-6; }
  constexpr double to_microseconds() const { return static_cast<double>(nanoseconds_) * 1e-3; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator-() const { return Duration(time_internal::subtract(0, nanoseconds_)); }
  constexpr Duration operator+(Duration other) const {
    return Duration(time_internal::add(nanoseconds_, other.nanoseconds_));
  }
  constexpr Duration operator-(Duration other) const {
    return Duration(time_internal::subtract(nanoseconds_, other.nanoseconds_));
  }
  constexpr Duration operator*(int64_t factor) const { return Duration(time_internal::multiply(nanoseconds_, factor)); }
  constexpr Duration operator/(int64_t divisor) const {
    return divisor == -1 ? -*this : Duration(nanoseconds_ / divisor);
  }
  constexpr Duration& operator+=(Duration other) { return *this = *this + other; }
  constexpr Duration& operator-=(Duration other) { return *this = *this - other; }
  constexpr Duration scaled(double factor) const {
    return Duration(time_internal::whole(static_cast<double>(nanoseconds_) * factor));
  }

 private:
  explicit constexpr Duration(int64_t nanoseconds) : nanoseconds_(nanoseconds) {}
  int64_t nanoseconds_ = 0;
};

// An instant on the clock of the loop that handed it out; instants of different
// loops must not be compared.
class TimePoint {
 public:
  constexpr TimePoint() = default;
  static constexpr TimePoint from_nanoseconds(int64_t n) { return TimePoint(n); }
  // Later than every instant: the deadline of a best-effort request.
  static constexpr TimePoint infinite_future() { return TimePoint(time_internal::kMax); }

  constexpr int64_t nanoseconds() const { return nanoseconds_; }
  constexpr bool is_infinite() const { return *this == infinite_future(); }

  constexpr auto operator<=>(const TimePoint&) const = default;
  // Infinity absorbs: infinite_future() +- d stays infinite.
  constexpr TimePoint operator+(Duration d) const {
    return is_infinite() ? *this : TimePoint(time_internal::add(nanoseconds_, d.nanoseconds()));
  }
  constexpr TimePoint operator-(Duration d) const {
    return is_infinite() ? *this : TimePoint(time_internal::subtract(nanoseconds_, d.nanoseconds()));
  }
  constexpr TimePoint& operator+=(Duration d) { return *this = *this + d; }
  constexpr Duration operator-(TimePoint other) const {
    if (is_infinite()) return Duration::max();
    return Duration::nanoseconds(time_internal::subtract(nanoseconds_, other.nanoseconds_));
  }

 private:
  explicit constexpr TimePoint(int64_t nanoseconds) : nanoseconds_(nanoseconds) {}
  int64_t nanoseconds_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_TIME_H_
