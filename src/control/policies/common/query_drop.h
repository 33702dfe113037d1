// QueryDrop: when a policy refuses a request that waits.
#ifndef FOLIOT_CONTROL_POLICIES_COMMON_QUERY_DROP_H_
#define FOLIOT_CONTROL_POLICIES_COMMON_QUERY_DROP_H_

#include <cstdint>

namespace foliot {

enum class QueryDrop : uint8_t {
  kUnmeetable,  // once it can no longer be met, by what its EXEC is expected to take
  kExpired,     // once its deadline has passed: what the baselines of Abacus do (section 7.1)
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_POLICIES_COMMON_QUERY_DROP_H_
