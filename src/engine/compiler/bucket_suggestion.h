// BucketSuggestion: sizes to begin with for the variable dimensions of a model, as the
// TOML that a model.toml takes.
#ifndef FOLIOT_ENGINE_COMPILER_BUCKET_SUGGESTION_H_
#define FOLIOT_ENGINE_COMPILER_BUCKET_SUGGESTION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compiler/dimensions.h"

namespace foliot {

using BucketSizes = std::map<std::string, std::vector<int64_t>>;  // as CompileOptions::buckets

// The declared lists, and for every other dimension one of the same length, chosen by
// its place. `count`: of that length if nothing is declared; 0: a usual one.
BucketSizes suggest_buckets(std::span<const VariableDimension> dimensions, const BucketSizes& declared,
                            size_t count = 0);

// "[32, 64, 128]".
std::string toml_list(std::span<const int64_t> numbers);
// In one line: "buckets = {sequence = [32, 64, 128]}".
std::string buckets_as_toml(const BucketSizes& buckets);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_BUCKET_SUGGESTION_H_
