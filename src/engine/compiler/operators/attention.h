// The heads of attention, as operands have them and as they are computed.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_ATTENTION_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_ATTENTION_H_

#include <cstdint>

#include "engine/compiler/operators/composer.h"

namespace foliot {

// [batch, length, heads * size] as [batch, heads, length, size].
ValueIndex split_heads(Composer& c, ValueIndex x, int64_t heads);
// And back.
ValueIndex join_heads(Composer& c, ValueIndex x);
// [batch, heads, ..] with every head `times` times in a row.
ValueIndex repeat_heads(Composer& c, ValueIndex x, int64_t times);

// Pairs of the first `turned` entries of each head, turned by an angle; x is [batch, heads, length, size], the angles'
// cosines and sines are [batch or 1, 1, length, turned / 2]. `interleaved`: a pair is two neighbours, else an entry of
// the first half and one of the second. REQUIRES: `turned` is even, from 2 to size.
ValueIndex rotate(Composer& c, ValueIndex x, ValueIndex cosine, ValueIndex sine, int64_t turned, bool interleaved);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_ATTENTION_H_
