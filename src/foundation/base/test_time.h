// Instants and spans as tests write them: at(5) is 5 ms after the loop's beginning, ms(5) lasts 5 ms.
#ifndef FOLIOT_FOUNDATION_BASE_TEST_TIME_H_
#define FOLIOT_FOUNDATION_BASE_TEST_TIME_H_

#include "foundation/base/time.h"

namespace foliot {

inline Duration ms(int64_t milliseconds) { return Duration::milliseconds(milliseconds); }
inline TimePoint at(int64_t milliseconds) { return TimePoint() + ms(milliseconds); }
inline TimePoint at_us(int64_t microseconds) { return TimePoint() + Duration::microseconds(microseconds); }

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_TEST_TIME_H_
