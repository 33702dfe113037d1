// Id<Tag>: an integer that cannot be mistaken for another kind of integer.
#ifndef FOLIOT_FOUNDATION_BASE_ID_H_
#define FOLIOT_FOUNDATION_BASE_ID_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace foliot {

template <typename Tag, typename Rep = uint32_t>
class Id {
 public:
  using Representation = Rep;
  constexpr Id() = default;
  explicit constexpr Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Rep value_ = 0;
};

}  // namespace foliot

template <typename Tag, typename Rep>
struct std::hash<foliot::Id<Tag, Rep>> {
  size_t operator()(foliot::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>()(id.value()); }
};

#endif  // FOLIOT_FOUNDATION_BASE_ID_H_
