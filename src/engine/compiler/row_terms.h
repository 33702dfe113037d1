// Row terms: what graphs of one model compute, as terms of which equal ones are
// one. Two graphs compute the same if the terms of their outputs are the same.
#ifndef FOLIOT_ENGINE_COMPILER_ROW_TERMS_H_
#define FOLIOT_ENGINE_COMPILER_ROW_TERMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/compiler/constant.h"
#include "engine/device/graph.h"
#include "engine/device/operator.h"
#include "foundation/core/tensor.h"

namespace foliot {

using TermIndex = uint32_t;
inline constexpr TermIndex kNoTerm = ~TermIndex{0};

// An operator's result, or an input or a constant, which have no operator.
struct Term {
  std::optional<OperatorKind> kind;
  std::vector<TermIndex> inputs;  // kNoTerm where left out
  Attributes attributes;
  DataType type = DataType::kFloat32;
  Shape shape;
  // Keeps the bytes alive, by whose address constants are distinguished. Null:
  // no constant.
  std::shared_ptr<const std::vector<std::byte>> constant;
};

// What changes nothing (a Reshape to the same shape, zeros that are added to
// integers, a part of a Concat) makes no term, and what is computed from small
// constants is one, since graphs of different batch sizes differ in these.
//
// Threading: one thread.
class RowTerms {
 public:
  // `pool` interned the constants of all graphs, and outlives this.
  explicit RowTerms(ConstantPool& pool) : pool_(pool) {}

  TermIndex input(size_t position, DataType type, Shape shape);
  TermIndex constant(Constant constant);
  TermIndex make(OperatorKind kind, std::vector<TermIndex> inputs, const Attributes& attributes, DataType type,
                 Shape shape);

  // Valid until a term is made.
  const Term& operator[](TermIndex index) const { return terms_[index]; }
  size_t size() const { return terms_.size(); }
  // REQUIRES: a constant.
  Constant constant_of(TermIndex index) const {
    return {terms_[index].type, terms_[index].shape, terms_[index].constant};
  }

 private:
  std::optional<TermIndex> simplified(OperatorKind kind, const std::vector<TermIndex>& inputs,
                                      const Attributes& attributes, DataType type, const Shape& shape);
  std::optional<TermIndex> part_of(const Term& concat, const Attributes& slice, const Shape& shape) const;
  // Of constants alone, as GraphBuilder evaluates them.
  std::optional<TermIndex> evaluated(OperatorKind kind, const std::vector<TermIndex>& inputs,
                                     const Attributes& attributes, DataType type, const Shape& shape);
  bool is_integer_zero(TermIndex index) const;
  TermIndex keep(std::string key, Term term);

  ConstantPool& pool_;
  std::vector<Term> terms_;
  std::unordered_map<std::string, TermIndex> by_content_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_ROW_TERMS_H_
