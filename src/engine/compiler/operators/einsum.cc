// Einsum, as a product of matrices.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// A value with a name for each of its dimensions. The dimensions that an
// ellipsis stands for are '0', '1', ..., counted from the last.
struct Named {
  ValueIndex value;
  std::string names;
};

// "ab,bc->ac" taken apart.
struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

Result<std::string> spelled_out(std::string term, int64_t rank, int64_t* ellipsis) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  const int64_t hidden = rank >= 0 ? rank - (static_cast<int64_t>(term.size()) - 3) : *ellipsis;
  if (hidden < 0 || hidden > 9) return Status::invalid_argument("the ellipsis does not fit an operand");
  std::string names;
  for (int64_t i = hidden; i-- > 0;) names += static_cast<char>('0' + i);
  *ellipsis = std::max(*ellipsis, hidden);
  return term.replace(dots, 3, names);
}

Result<Equation> parse(NodeTranslation& node) {
  std::string text = node.text("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    equation.terms.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (equation.terms.size() != node.input_count()) return Status::invalid_argument("the equation does not fit");
  int64_t ellipsis = 0;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    FOLIOT_ASSIGN_OR_RETURN(equation.terms[i], spelled_out(equation.terms[i], node.rank(i), &ellipsis));
    if (static_cast<int64_t>(equation.terms[i].size()) != node.rank(i)) {
      return Status::invalid_argument(fmt::format("term {} of '{}' does not fit its operand", i, text));
    }
  }
  if (arrow != std::string::npos) {
    FOLIOT_ASSIGN_OR_RETURN(equation.result, spelled_out(text.substr(arrow + 2), -1, &ellipsis));
    return equation;
  }
  // All names that stand there once, in order, behind the ellipsis.
  std::map<char, int> counts;
  for (const std::string& term : equation.terms) {
    for (char name : term) ++counts[name];
  }
  for (int64_t i = ellipsis; i-- > 0;) equation.result += static_cast<char>('0' + i);
  for (const auto& [name, count] : counts) {
    if (count == 1 && (name < '0' || name > '9')) equation.result += name;
  }
  return equation;
}

bool has(const std::string& names, char name) { return names.find(name) != std::string::npos; }

Named summed(Composer& c, Named x, const std::string& kept) {
  std::vector<int64_t> axes;
  std::string names;
  for (size_t i = 0; i < x.names.size(); ++i) {
    if (has(kept, x.names[i])) {
      names += x.names[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  return axes.empty() ? x : Named{c.reduce(Function::kSum, x.value, axes, false), names};
}

// A name that stands there twice: what is beside the diagonal becomes zero and
// is added up.
Named diagonal(Composer& c, Named x) {
  for (size_t i = 0; i < x.names.size(); ++i) {
    const size_t j = x.names.find(x.names[i], i + 1);
    if (j == std::string::npos) continue;
    const Shape shape = c.shape(x.value);
    const ValueIndex on =
        c.binary(Function::kEqual, c.positions(shape[i], i, shape.size()), c.positions(shape[j], j, shape.size()));
    const ValueIndex kept = c.where(on, x.value, c.like(x.value, 0));
    x.value = c.reduce(Function::kSum, kept, {static_cast<int64_t>(j)}, false);
    x.names.erase(j, 1);
    --i;
  }
  return x;
}

// The dimensions in this order; those that x lacks are 1.
ValueIndex arranged(Composer& c, const Named& x, const std::string& order) {
  std::vector<int64_t> permutation;
  Shape shape;
  const Shape own = c.shape(x.value);
  for (char name : order) {
    const size_t at = x.names.find(name);
    if (at != std::string::npos) permutation.push_back(static_cast<int64_t>(at));
    shape.push_back(at == std::string::npos ? 1 : own[at]);
  }
  return c.reshape(c.transpose(x.value, permutation), shape);
}

int64_t extent(const Shape& shape, size_t first, size_t count) {
  int64_t product = 1;
  for (size_t i = first; i < first + count; ++i) product *= shape[i];
  return product;
}

// Names of both that are kept are the batch, those of one side the rows and the
// columns, and those of both that are not needed any more are summed over.
Named product(Composer& c, const Named& a, const Named& b, const std::string& needed) {
  std::string batch, rows, columns, inner;
  for (char name : a.names) (!has(b.names, name) ? rows : has(needed, name) ? batch : inner) += name;
  for (char name : b.names) {
    if (!has(a.names, name)) columns += name;
  }
  const ValueIndex left = arranged(c, a, batch + rows + inner), right = arranged(c, b, batch + inner + columns);
  const Shape l = c.shape(left), r = c.shape(right);
  const size_t n = batch.size();
  Shape left_matrices(l.begin(), l.begin() + static_cast<std::ptrdiff_t>(n));
  Shape right_matrices(r.begin(), r.begin() + static_cast<std::ptrdiff_t>(n));
  left_matrices.insert(left_matrices.end(), {extent(l, n, rows.size()), extent(l, n + rows.size(), inner.size())});
  right_matrices.insert(right_matrices.end(),
                        {extent(r, n, inner.size()), extent(r, n + inner.size(), columns.size())});
  const ValueIndex result = c.matmul(c.reshape(left, left_matrices), c.reshape(right, right_matrices));
  Shape shape = c.shape(result);
  shape.resize(n);
  shape.insert(shape.end(), l.begin() + static_cast<std::ptrdiff_t>(n),
               l.begin() + static_cast<std::ptrdiff_t>(n + rows.size()));
  shape.insert(shape.end(), r.begin() + static_cast<std::ptrdiff_t>(n + inner.size()), r.end());
  return {c.reshape(result, shape), batch + rows + columns};
}

Status einsum(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const Equation equation, parse(node));
  Composer c(node.builder());
  Named result{};
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    if (!node.has_input(i)) return Status::invalid_argument("an operand is missing");
    std::string needed = equation.result;
    for (size_t j = i + 1; j < equation.terms.size(); ++j) needed += equation.terms[j];
    Named operand = diagonal(c, {node.input(i), equation.terms[i]});
    operand = summed(c, operand, i == 0 ? needed : needed + result.names);
    result = i == 0 ? operand : product(c, summed(c, result, needed + operand.names), operand, needed);
    FOLIOT_RETURN_IF_ERROR(c.status());
  }
  for (char name : equation.result) {
    if (!has(result.names, name)) return Status::invalid_argument("the result has a dimension that no operand has");
  }
  result = summed(c, result, equation.result);
  return c.finish(node, arranged(c, result, equation.result));
}

constexpr OnnxOperator kEinsumOperators[] = {{"Einsum", 1, kAnyNumber, einsum}};

}  // namespace

std::span<const OnnxOperator> einsum_operators() { return kEinsumOperators; }

}  // namespace foliot
