#include "engine/compiler/row_terms.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "engine/compiler/evaluate.h"

namespace foliot {
namespace {

// As GraphBuilder evaluates broadcasts of constants.
constexpr uint64_t kRepeatedBytesMax = uint64_t{64} << 10;

// Numbers by their bits, lists with their lengths: different contents give
// different keys.
class Key {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T> Key& add(const T& value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    text_.append(bytes, sizeof(T));
    return *this;
  }
  template <typename T>
  Key& add(const std::vector<T>& values) {
    add(values.size());
    for (const T& value : values) add(value);
    return *this;
  }
  Key& add(const std::string& value) {
    add(value.size());
    text_ += value;
    return *this;
  }
  Key& add(const Attributes& attributes) {
    for (const auto& [name, attribute] : attributes.values()) {
      add(name).add(attribute.index());
      std::visit([&](const auto& value) { add(value); }, attribute);
    }
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

TermIndex RowTerms::keep(std::string key, Term term) {
  const auto [found, is_new] = by_content_.try_emplace(std::move(key), static_cast<TermIndex>(terms_.size()));
  if (is_new) terms_.push_back(std::move(term));
  return found->second;
}

TermIndex RowTerms::input(size_t position, DataType type, Shape shape) {
  std::string key = Key().add('i').add(position).add(type).add(shape).take();
  return keep(std::move(key),
              {.kind = {}, .inputs = {}, .attributes = {}, .type = type, .shape = std::move(shape), .constant = {}});
}

TermIndex RowTerms::constant(Constant constant) {
  constant = pool_.intern(std::move(constant));
  std::string key = Key().add('c').add(constant.bytes.get()).add(constant.type).add(constant.shape).take();
  return keep(std::move(key), {.kind = {},
                               .inputs = {},
                               .attributes = {},
                               .type = constant.type,
                               .shape = std::move(constant.shape),
                               .constant = std::move(constant.bytes)});
}

bool RowTerms::is_integer_zero(TermIndex index) const {
  const Term& term = terms_[index];
  return term.constant != nullptr && is_integer(term.type) &&
         std::ranges::all_of(*term.constant, [](std::byte byte) { return byte == std::byte{0}; });
}

std::optional<TermIndex> RowTerms::simplified(OperatorKind kind, const std::vector<TermIndex>& inputs,
                                              const Attributes& attributes, DataType type, const Shape& shape) {
  const auto is_same = [&](TermIndex index) { return terms_[index].type == type && terms_[index].shape == shape; };
  const Term& first = terms_[inputs[0]];
  switch (kind) {
    case OperatorKind::kReshape:
      if (is_same(inputs[0])) return inputs[0];
      if (first.constant != nullptr) return constant({type, shape, first.constant});
      // Of several in a row the last one alone counts.
      if (first.kind == OperatorKind::kReshape) {
        return make(OperatorKind::kReshape, {first.inputs[0]}, attributes, type, shape);
      }
      return std::nullopt;
    case OperatorKind::kExpand: return is_same(inputs[0]) ? std::optional(inputs[0]) : std::nullopt;
    case OperatorKind::kSlice:
      if (is_same(inputs[0]) && std::ranges::all_of(attributes.integers("steps"), [](int64_t s) { return s > 0; })) {
        return inputs[0];
      }
      return first.kind == OperatorKind::kConcat ? part_of(first, attributes, shape) : std::nullopt;
    case OperatorKind::kBinary:
      if (attributes.function() != Function::kAdd) return std::nullopt;
      for (const size_t i : {size_t{0}, size_t{1}}) {
        if (is_integer_zero(inputs[i]) && is_same(inputs[1 - i])) return inputs[1 - i];
      }
      return std::nullopt;
    default: return std::nullopt;
  }
}

// Where a Slice takes exactly one operand of a Concat.
std::optional<TermIndex> RowTerms::part_of(const Term& concat, const Attributes& slice, const Shape& shape) const {
  const auto& starts = slice.integers("starts");
  const auto& steps = slice.integers("steps");
  if (std::ranges::any_of(steps, [](int64_t step) { return step != 1; })) return std::nullopt;
  const auto axis = static_cast<size_t>(concat.attributes.integer("axis"));
  int64_t at = 0;
  for (const TermIndex part : concat.inputs) {
    if (at == starts[axis] && terms_[part].shape == shape) return part;
    at += terms_[part].shape[axis];
  }
  return std::nullopt;
}

std::optional<TermIndex> RowTerms::evaluated(OperatorKind kind, const std::vector<TermIndex>& inputs,
                                             const Attributes& attributes, DataType type, const Shape& shape) {
  if (byte_size(type, shape) > kRepeatedBytesMax) return std::nullopt;
  std::vector<Constant> operands;
  for (const TermIndex input : inputs) {
    if (input == kNoTerm || terms_[input].constant == nullptr) return std::nullopt;
    operands.push_back(constant_of(input));
  }
  std::optional<Constant> result = evaluate(kind, operands, attributes, {type, shape});
  return result ? std::optional(constant(std::move(*result))) : std::nullopt;
}

TermIndex RowTerms::make(OperatorKind kind, std::vector<TermIndex> inputs, const Attributes& attributes, DataType type,
                         Shape shape) {
  if (const auto simple = simplified(kind, inputs, attributes, type, shape)) return *simple;
  if (const auto known = evaluated(kind, inputs, attributes, type, shape)) return *known;
  std::string key = Key().add('n').add(kind).add(type).add(inputs).add(shape).add(attributes).take();
  return keep(std::move(key), {.kind = kind,
                               .inputs = std::move(inputs),
                               .attributes = attributes,
                               .type = type,
                               .shape = std::move(shape),
                               .constant = {}});
}

}  // namespace foliot
