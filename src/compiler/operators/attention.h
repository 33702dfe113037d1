// The heads of attention, as operands have them and as they are computed.
#ifndef FOLIOT_COMPILER_OPERATORS_ATTENTION_H_
#define FOLIOT_COMPILER_OPERATORS_ATTENTION_H_

#include <cstdint>

#include "compiler/operators/composer.h"

namespace foliot {

// [batch, length, heads * size] as [batch, heads, length, size].
ValueIndex split_heads(Composer& c, ValueIndex x, int64_t heads);
// And back.
ValueIndex join_heads(Composer& c, ValueIndex x);

}  // namespace foliot

#endif  // FOLIOT_COMPILER_OPERATORS_ATTENTION_H_
