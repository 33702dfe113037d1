// TfIdfVectorizer over integers: how often each n-gram of a list stands in a row. An n-gram of a length and a skip is
// compared with all windows of the row at once, one position after the other.
#include <algorithm>
#include <vector>

#include "engine/compiler/operators/attribute_check.h"
#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// Of the pool: the n-grams of one length, [count, length].
struct Grams {
  int64_t length = 0, count = 0;
  std::vector<int64_t> items;
};

Result<std::vector<Grams>> pool_of(NodeTranslation& node) {
  const std::vector<int64_t> pool = node.integers("pool_int64s"), starts = node.integers("ngram_counts");
  if (pool.empty()) return Status::unimplemented("it has no 'pool_int64s': only n-grams of integers can be served");
  std::vector<Grams> result;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<int64_t>(i) + 1, pool_end = static_cast<int64_t>(pool.size());
    const int64_t begin = starts[i], end = i + 1 < starts.size() ? starts[i + 1] : pool_end;
    if (begin < 0 || begin > end || end > pool_end || (end - begin) % length != 0) {
      return invalid("'ngram_counts' has {} to {} for n-grams of {} items, of {} in 'pool_int64s'", begin, end, length,
                     pool_end);
    }
    result.push_back({length, (end - begin) / length, {pool.begin() + begin, pool.begin() + end}});
  }
  return result;
}

// Counts [rows, grams.count] in x [rows, items], whose neighbours in an n-gram are `step` apart.
ValueIndex counts(Composer& c, ValueIndex x, const Grams& grams, int64_t step) {
  const int64_t rows = c.shape(x)[0], windows = c.shape(x)[1] - (grams.length - 1) * step;
  if (windows <= 0) return c.expand(c.scalar(DataType::kFloat32, 0), {rows, grams.count});
  ValueIndex same = kNoValue;
  for (int64_t i = 0; i < grams.length; ++i) {
    std::vector<int64_t> items;
    for (int64_t gram = 0; gram < grams.count; ++gram)
      items.push_back(grams.items[static_cast<size_t>(gram * grams.length + i)]);
    const ValueIndex here = c.reshape(c.slice(x, 1, i * step, windows), {rows, 1, windows});
    const ValueIndex equal = c.binary(Function::kEqual, here, c.integers(items, {grams.count, 1}));
    same = same == kNoValue ? equal : c.binary(Function::kAnd, same, equal);
  }
  return c.reduce(Function::kSum, c.cast(same, DataType::kFloat32), {2}, false);
}

// Where each column of the result is among the n-grams; what is none of them, behind the last.
Result<std::vector<int64_t>> columns(const std::vector<int64_t>& indexes) {
  const int64_t last = indexes.empty() ? -1 : *std::ranges::max_element(indexes);
  const auto none = static_cast<int64_t>(indexes.size());
  if (last < 0 || last > 1 << 24) return invalid("'ngram_indexes' goes up to {}, the limit is {}", last, 1 << 24);
  std::vector<int64_t> result(static_cast<size_t>(last) + 1, none);
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (indexes[i] < 0) return invalid("'ngram_indexes' has {}", indexes[i]);
    int64_t& column = result[static_cast<size_t>(indexes[i])];
    if (column != none) return invalid("'ngram_indexes' has {} twice", indexes[i]);
    column = static_cast<int64_t>(i);
  }
  return result;
}

// The counts of all n-grams as the mode wants them.
Result<ValueIndex> weighted(NodeTranslation& node, Composer& c, ValueIndex found, int64_t count) {
  const std::string mode = node.text("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return invalid("mode is '{}', not TF, IDF or TFIDF", mode);
  if (mode == "TF") return found;
  if (mode == "IDF") found = c.binary(Function::kMin, found, c.like(found, 1));
  const std::vector<float> weights = node.reals("weights");
  if (weights.empty()) return found;
  FOLIOT_RETURN_IF_ERROR(
      check_value_count("weights", weights.size(), static_cast<size_t>(count), "one for each n-gram"));
  return c.mul(found, c.constant(make_constant({count}, std::span<const float>(weights))));
}

Status tf_idf_vectorizer(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<Grams> pool, pool_of(node));
  const std::vector<int64_t> indexes = node.integers("ngram_indexes");
  FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> positions, columns(indexes));
  Composer c(node.builder());
  ValueIndex x = c.cast(node.input(0), DataType::kInt64);
  const bool one = c.rank(x) == 1;
  if (one) x = c.reshape(x, {1, c.shape(x)[0]});
  if (c.rank(x) != 2) return invalid("its input has {} dimensions, not 1 or 2", c.rank(x));
  const int64_t rows = c.shape(x)[0], shortest = node.integer("min_gram_length", 1),
                longest = node.integer("max_gram_length", 1), skips = node.integer("max_skip_count", 0);
  std::vector<ValueIndex> parts;
  int64_t total = 0;
  for (const Grams& grams : pool) {
    total += grams.count;
    ValueIndex part = c.expand(c.scalar(DataType::kFloat32, 0), {rows, grams.count});
    const bool wanted = grams.count > 0 && grams.length >= shortest && grams.length <= longest;
    // An item alone skips nothing.
    for (int64_t skip = 0; wanted && skip <= (grams.length == 1 ? 0 : skips) && skip < c.shape(x)[1]; ++skip)
      part = c.add(part, counts(c, x, grams, skip + 1));
    if (grams.count > 0) parts.push_back(part);
  }
  if (total != static_cast<int64_t>(indexes.size())) {
    return invalid("'ngram_indexes' has {} values for {} n-grams", indexes.size(), total);
  }
  FOLIOT_ASSIGN_OR_RETURN(const ValueIndex found, weighted(node, c, c.concat(std::move(parts), 1), total));
  const ValueIndex none = c.expand(c.scalar(DataType::kFloat32, 0), {rows, 1});
  const auto count = static_cast<int64_t>(positions.size());
  ValueIndex result = c.gather(c.concat({found, none}, 1), c.integers(positions, {count}), 1);
  if (one) result = c.reshape(result, {count});
  return c.finish(node, result);
}

constexpr OnnxOperator kNgramOperators[] = {{"TfIdfVectorizer", 1, 1, tf_idf_vectorizer}};

}  // namespace

std::span<const OnnxOperator> ngram_operators() { return kNgramOperators; }

}  // namespace foliot
