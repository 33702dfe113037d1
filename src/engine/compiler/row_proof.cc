#include "engine/compiler/row_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/compiler/operators/nowhere.h"
#include "engine/compiler/value_type.h"

namespace foliot {
namespace {

constexpr std::string_view kAlongRows = "it works along the dimension in which the rows lie";
constexpr std::string_view kTwoPlaces = "it takes the rows of one operand with all rows of another";
constexpr std::string_view kUnequal = "a constant has other values for each row";
constexpr std::string_view kScattered =
    "the rows lie across several dimensions, as after a Reshape that takes "
    "some together";
constexpr std::string_view kByPosition = "it computes with the rows' places in the batch";
constexpr std::string_view kNoRule = "nothing is known of what it does with rows";

// Of values that are computed from one another, and from no input.
constexpr int kWholeDepthMax = 64;

int64_t stride_of(const Shape& shape, size_t axis) {
  int64_t stride = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
  return stride;
}

// Where the rows lie: entry (o * rows + r) * inner + i of a dimension belongs
// to row r.
struct RowPlace {
  size_t axis = 0;
  int64_t outer = 1;
  int64_t inner = 1;

  int64_t row_extent() const { return outer * inner; }
  bool operator==(const RowPlace&) const = default;
};

// Follows the rows through one graph.
class Interpreter {
 public:
  Interpreter(const Graph& graph, RowTerms& terms) : graph_(graph), rows_(graph.batch_size), terms_(terms) {
    states_.resize(graph.values.size());
  }

  // The terms of the outputs' rows, or why there are none.
  std::variant<std::vector<TermIndex>, std::string> run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) start_at(graph_.inputs[i], i);
    for (const Node& node : graph_.nodes) visit(node);
    std::vector<TermIndex> results;
    for (const ValueIndex output : graph_.outputs) {
      const State& state = state_of(output);
      if (const auto* mixed = std::get_if<Mixed>(&state)) return describe(*mixed->node, mixed->why);
      const std::optional<TermIndex> row = row_of_output(output);
      if (!row) return fmt::format("output '{}' does not have its rows in the first dimension", shape_name(output));
      results.push_back(*row);
    }
    return results;
  }

  // The first operator that `outputs` need and that makes a term from `known`
  // on.
  const Node* first_new(TermIndex known) const {
    std::vector<bool> needed(graph_.values.size());
    for (const ValueIndex output : graph_.outputs) needed[output] = true;
    const Node* first = nullptr;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!needed[node.outputs[0]]) continue;
      for (const ValueIndex input : node.inputs)
        if (input != kNoValue) needed[input] = true;
      const auto* row = std::get_if<Row>(&states_[node.outputs[0]]);
      if (row != nullptr && row->term >= known) first = &node;
    }
    return first;
  }

  static std::string describe(const Node& node, std::string_view why) {
    return fmt::format("node '{}' ({}): {}", node.name, to_string(node.kind), why);
  }

 private:
  struct Range {
    int64_t least = 0, most = 0;
  };
  struct Whole {  // not of the inputs: the same for all rows
    TermIndex term = kNoTerm;
  };
  struct Row {
    TermIndex term = kNoTerm;  // one row
    // Element e of the whole value belongs to row (e / stride) % rows.
    int64_t stride = 1;
    // Positions in all rows together: row r holds `offset` * r more than the
    // term.
    int64_t offset = 0;
    std::optional<Range> range{};  // of the term's integers, where known; without kNowhere, whose rows are refused
  };
  struct Mixed {
    const Node* node = nullptr;
    std::string_view why;
  };
  // monostate: of a constant that was not yet met.
  using State = std::variant<std::monostate, Whole, Row, Mixed>;

  std::optional<TermIndex> row_of_output(ValueIndex output) {
    const Shape& extents = shape(output);
    if (extents.empty() || extents.front() != rows_) return std::nullopt;
    return rows_ == 1 ? std::optional(term_of(output)) : row_in(output, {.axis = 0, .outer = 1, .inner = 1});
  }

  const Shape& shape(ValueIndex value) const { return graph_.values[value].shape; }
  const std::string& shape_name(ValueIndex value) const { return graph_.values[value].name; }

  void start_at(ValueIndex input, size_t position) {
    Shape row = shape(input);
    const int64_t stride = stride_of(row, 0);
    row.front() = 1;
    const TermIndex term = terms_.input(position, graph_.values[input].type, std::move(row));
    states_[input] = Row{term, stride};
  }

  const State& state_of(ValueIndex value) {
    State& state = states_[value];
    if (std::holds_alternative<std::monostate>(state)) {
      const Value& known = graph_.values[value];
      state = Whole{terms_.constant({known.type, known.shape, known.constant})};
    }
    return state;
  }

  std::optional<RowPlace> place_of(const Shape& shape, int64_t stride) const {
    if (stride == 0) return std::nullopt;  // rows without elements
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const int64_t below = stride_of(shape, axis);
      const int64_t extent = shape[axis];
      if (below == 0 || stride % below != 0) continue;
      const int64_t inner = stride / below;
      if (inner * rows_ <= extent && extent % (inner * rows_) == 0) {
        return RowPlace{axis, extent / (inner * rows_), inner};
      }
    }
    return std::nullopt;
  }

  // Nullopt: it is the same for all rows, or its rows lie in no dimension.
  std::optional<RowPlace> place_of(ValueIndex value) {
    if (value == kNoValue) return std::nullopt;
    const auto* row = std::get_if<Row>(&state_of(value));
    return row != nullptr ? place_of(shape(value), row->stride) : std::nullopt;
  }

  bool is_row(ValueIndex value) { return value != kNoValue && std::holds_alternative<Row>(state_of(value)); }
  bool is_whole(ValueIndex value) { return value == kNoValue || std::holds_alternative<Whole>(state_of(value)); }

  TermIndex term_of(ValueIndex value) {
    if (value == kNoValue) return kNoTerm;
    const State& state = state_of(value);
    const auto* row = std::get_if<Row>(&state);
    return row != nullptr ? row->term : std::get<Whole>(state).term;
  }

  static Shape row_shape(Shape shape, const RowPlace& place) {
    shape[place.axis] = place.row_extent();
    return shape;
  }

  // A row of what has its rows in `place`, or has them there all alike.
  std::optional<TermIndex> row_in(ValueIndex value, const RowPlace& place) {
    const State& state = state_of(value);
    if (const auto* row = std::get_if<Row>(&state)) {
      const bool fits = row->offset == 0 && place_of(shape(value), row->stride) == place;
      return fits ? std::optional(row->term) : std::nullopt;
    }
    if (!std::holds_alternative<Whole>(state) || place.axis >= shape(value).size()) return std::nullopt;
    if (element_count(shape(value)) == 0 && shape(value)[place.axis] == place.row_extent() * rows_) {
      return terms_.constant(make_constant(graph_.values[value].type, row_shape(shape(value), place), {}));
    }
    return row_of_whole(std::get<Whole>(state).term, stride_of(shape(value), place.axis) * place.inner);
  }

  // Of a value that is not computed from inputs: a row of it, if all are alike.
  std::optional<TermIndex> row_of_whole(TermIndex index, int64_t stride) {
    const auto known = rows_of_whole_.find({index, stride});
    if (known != rows_of_whole_.end()) return known->second;
    if (depth_ == kWholeDepthMax) return std::nullopt;
    ++depth_;
    const std::optional<TermIndex> row = find_row_of_whole(index, stride);
    --depth_;
    rows_of_whole_[{index, stride}] = row;
    return row;
  }

  std::optional<TermIndex> find_row_of_whole(TermIndex index, int64_t stride) {
    const Term term = terms_[index];
    const std::optional<RowPlace> place = place_of(term.shape, stride);
    if (!place) return std::nullopt;
    const Shape row = row_shape(term.shape, *place);
    if (term.constant != nullptr) return row_of_constant(term, *place, row);
    if (!term.kind) return std::nullopt;
    std::vector<TermIndex> inputs = term.inputs;
    switch (*term.kind) {
      case OperatorKind::kReshape: {
        const auto source = row_of_whole(inputs[0], stride);
        if (!source) return std::nullopt;
        inputs[0] = *source;
        break;
      }
      case OperatorKind::kUnary:
      case OperatorKind::kCast:
      case OperatorKind::kBinary:
      case OperatorKind::kExpand:
        for (TermIndex& input : inputs)
          if (!take_row(input, *place, term.shape.size())) return std::nullopt;
        break;
      case OperatorKind::kMatMul:  // the first product of a recurrent network,
                                   // with a state of zeros
        if (term.shape.size() != 2 || place->axis != 0 || term.attributes.integer("transpose_a") != 0) {
          return std::nullopt;
        }
        if (!take_row(inputs[0], *place, 2)) return std::nullopt;
        break;
      default: return std::nullopt;
    }
    return terms_.make(*term.kind, std::move(inputs), term.attributes, term.type, row);
  }

  // Of an operand of such a value, which is broadcast to `rank` dimensions.
  // False: its rows are not alike.
  bool take_row(TermIndex& input, const RowPlace& place, size_t rank) {
    const Shape& given = terms_[input].shape;
    const size_t missing = rank - given.size();
    if (place.axis < missing || given[place.axis - missing] == 1) return true;
    const auto row = row_of_whole(input, stride_of(given, place.axis - missing) * place.inner);
    if (row) input = *row;
    return row.has_value();
  }

  std::optional<TermIndex> row_of_constant(const Term& term, const RowPlace& place, const Shape& row) {
    const auto block = static_cast<size_t>(stride_of(term.shape, place.axis) * place.inner) * size_of(term.type);
    const size_t blocks = block == 0 ? 0 : term.constant->size() / block;
    const auto rows = static_cast<size_t>(rows_);
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < blocks; ++i) {
      const std::byte* const at = term.constant->data() + i * block;
      const size_t r = i % rows;
      if (r == 0) {
        bytes.insert(bytes.end(), at, at + block);
      } else if (std::memcmp(at, at - r * block, block) != 0) {
        return std::nullopt;
      }
    }
    return terms_.constant(make_constant(term.type, row, std::move(bytes)));
  }

  // The operand of a Concat that a Slice takes; kNoValue: none.
  ValueIndex part_of(const Node& slice) const {
    const auto found = concats_.find(slice.inputs[0]);
    if (found == concats_.end()) return kNoValue;
    const Node& concat = *found->second;
    const auto& starts = slice.attributes.integers("starts");
    const auto axis = static_cast<size_t>(concat.attributes.integer("axis"));
    if (std::ranges::any_of(slice.attributes.integers("steps"), [](int64_t step) { return step != 1; }))
      return kNoValue;
    int64_t at = 0;
    for (const ValueIndex part : concat.inputs) {
      if (at == starts[axis] && shape(part) == shape(slice.outputs[0])) return part;
      at += shape(part)[axis];
    }
    return kNoValue;
  }

  void visit(const Node& node) {
    if (node.kind == OperatorKind::kConcat) concats_[node.outputs[0]] = &node;
    if (node.kind == OperatorKind::kSlice && part_of(node) != kNoValue) {
      states_[node.outputs[0]] = state_of(part_of(node));
      return;
    }
    State& result = states_[node.outputs[0]];
    bool is_of_rows = false;
    for (const ValueIndex input : node.inputs) {
      if (input == kNoValue) continue;
      const State& state = state_of(input);
      if (std::holds_alternative<Mixed>(state)) {
        result = state;
        return;
      }
      is_of_rows = is_of_rows || std::holds_alternative<Row>(state);
    }
    why_ = kNoRule;
    std::optional<State> made;
    if (!node.post_operations.empty() || node.outputs.size() != 1) {
      made = std::nullopt;
    } else if (!is_of_rows) {
      made = Whole{make(node, operands(node), shape(node.outputs[0]))};
    } else if (rows_ == 1) {
      made = Row{make(node, operands(node), shape(node.outputs[0])), 1};
    } else {
      made = row_of(node);
      if (auto* row = made ? std::get_if<Row>(&*made) : nullptr) take_range(node, *row);
    }
    result = made ? *made : State(Mixed{&node, why_});
  }

  std::optional<Range> range_of(ValueIndex value) {
    const auto* row = std::get_if<Row>(&state_of(value));
    return row != nullptr ? row->range : std::nullopt;
  }

  // Of integers that choose positions, as indices that count from the end are
  // brought into a range.
  void take_range(const Node& node, Row& row) {
    if (!is_integer(graph_.values[node.outputs[0]].type)) return;
    switch (node.kind) {
      case OperatorKind::kReshape:
      case OperatorKind::kExpand:
      case OperatorKind::kTranspose: row.range = range_of(node.inputs[0]); break;
      case OperatorKind::kUnary:
        if (node.attributes.function() == Function::kClip) row.range = clipped(node);
        if (node.attributes.function() == Function::kLinear) row.range = scaled(node, range_of(node.inputs[0]));
        break;
      case OperatorKind::kBinary:
        if (node.attributes.function() == Function::kAdd) row.range = sum_of(node);
        break;
      case OperatorKind::kWhere:
        row.range = is_nowhere(node.inputs[2]) ? range_of(node.inputs[1]) : counted_from_the_end(node);
        break;
      default: break;
    }
  }

  static std::optional<Range> clipped(const Node& node) {
    const double least = node.attributes.real("alpha"), most = node.attributes.real("beta");
    const double bound = 1LL << 40;
    if (!(least >= -bound && most <= bound && least <= most)) return std::nullopt;
    return Range{static_cast<int64_t>(least), static_cast<int64_t>(most)};
  }

  static std::optional<Range> scaled(const Node& node, std::optional<Range> range) {
    const double factor = node.attributes.real("alpha");
    if (!range || node.attributes.real("beta") != 0 || !(factor >= 1 && factor <= 1 << 20)) return std::nullopt;
    const auto whole = static_cast<int64_t>(factor);
    if (static_cast<double>(whole) != factor || range->least < 0 || range->most > int64_t{1} << 40) return std::nullopt;
    return Range{range->least * whole, range->most * whole};
  }

  std::optional<Range> sum_of(const Node& node) {
    Range sum;
    for (const ValueIndex input : node.inputs) {
      std::optional<Range> range = range_of(input);
      const std::optional<Offset> offset = range ? std::nullopt : offset_of(input);
      if (offset && offset->first_is_zero) range = Range{};
      if (!range || range->most > int64_t{1} << 40 || range->least < -(int64_t{1} << 40)) return std::nullopt;
      sum = {sum.least + range->least, sum.most + range->most};
    }
    return sum;
  }

  // Where(c < 0, c + extent, c).
  std::optional<Range> counted_from_the_end(const Node& node) {
    const std::optional<Range> range = range_of(node.inputs[2]);
    const auto *condition = std::get_if<Row>(&state_of(node.inputs[0])),
               *sum = std::get_if<Row>(&state_of(node.inputs[1]));
    if (!range || condition == nullptr || sum == nullptr) return std::nullopt;
    const TermIndex counted = term_of(node.inputs[2]);
    const Term& less = terms_[condition->term];
    const Term& added = terms_[sum->term];
    if (!is_binary(less, Function::kLess, counted) || !is_binary(added, Function::kAdd, counted)) return std::nullopt;
    const std::optional<int64_t> bound = scalar_of(less.inputs[1]), extent = scalar_of(added.inputs[1]);
    if (bound != 0 || !extent || *extent < 0) return std::nullopt;
    return Range{std::min<int64_t>(range->least + *extent, 0), std::max(*extent - 1, range->most)};
  }

  bool is_nowhere(ValueIndex value) {
    const auto* whole = std::get_if<Whole>(&state_of(value));
    return whole != nullptr && scalar_of(whole->term) == kNowhere;
  }

  static bool is_binary(const Term& term, Function function, TermIndex first) {
    return term.kind == OperatorKind::kBinary && term.attributes.function() == function && term.inputs[0] == first;
  }

  std::optional<int64_t> scalar_of(TermIndex index) const {
    const Term& term = terms_[index];
    if (term.constant == nullptr || !is_integer(term.type) || element_count(term.shape) != 1) return std::nullopt;
    return to_integers(terms_.constant_of(index))[0];
  }

  std::vector<TermIndex> operands(const Node& node) {
    std::vector<TermIndex> result;
    for (const ValueIndex input : node.inputs) result.push_back(term_of(input));
    return result;
  }

  TermIndex make(const Node& node, std::vector<TermIndex> inputs, Shape shape, const Attributes& attributes) {
    return terms_.make(node.kind, std::move(inputs), attributes, graph_.values[node.outputs[0]].type, std::move(shape));
  }
  TermIndex make(const Node& node, std::vector<TermIndex> inputs, Shape shape) {
    return make(node, std::move(inputs), std::move(shape), node.attributes);
  }

  std::nullopt_t fail(std::string_view why) {
    why_ = why;
    return std::nullopt;
  }

  // The result, with its rows in `place`.
  State result_of(const Node& node, std::vector<TermIndex> inputs, const RowPlace& place,
                  const Attributes& attributes) {
    const Shape& whole = shape(node.outputs[0]);
    return Row{make(node, std::move(inputs), row_shape(whole, place), attributes),
               stride_of(whole, place.axis) * place.inner};
  }
  State result_of(const Node& node, std::vector<TermIndex> inputs, const RowPlace& place) {
    return result_of(node, std::move(inputs), place, node.attributes);
  }

  // REQUIRES: several rows, and an operand that has them.
  std::optional<State> row_of(const Node& node) {
    if (node.kind == OperatorKind::kReshape) return reshape(node);
    for (const ValueIndex input : node.inputs)
      if (is_row(input) && !place_of(input)) return fail(kScattered);
    if (auto positions = positions_of(node)) return positions;
    if (has_offset(node)) return fail(kByPosition);
    switch (node.kind) {
      case OperatorKind::kUnary:
      case OperatorKind::kCast:
      case OperatorKind::kQuantize:
      case OperatorKind::kBinary:
      case OperatorKind::kWhere:
      case OperatorKind::kExpand: return elementwise(node);
      case OperatorKind::kDequantize: return node.attributes.has("axis") ? std::nullopt : elementwise(node);
      case OperatorKind::kSoftmax:
      case OperatorKind::kCumulative:
      case OperatorKind::kTopK: return along(node, {node.attributes.integer("axis")}, true);
      case OperatorKind::kReduce:
        return along(node, node.attributes.integers("axes"), node.attributes.integer("keep_dims") != 0);
      case OperatorKind::kArgReduce:
        return along(node, {node.attributes.integer("axis")}, node.attributes.integer("keep_dims") != 0);
      case OperatorKind::kLrn: return along(node, {1}, true);
      case OperatorKind::kLayerNorm: return layer_norm(node);
      case OperatorKind::kTranspose: return transpose(node);
      case OperatorKind::kConcat: return concat(node);
      case OperatorKind::kSlice: return slice(node);
      case OperatorKind::kPad: return pad(node);
      case OperatorKind::kResize: return resize(node);
      case OperatorKind::kGather: return gather(node);
      case OperatorKind::kGatherElements:
      case OperatorKind::kScatterElements: return by_element(node);
      case OperatorKind::kMatMul: return matmul(node);
      case OperatorKind::kBlockMatMul: return block_matmul(node);
      case OperatorKind::kMaxPool:
      case OperatorKind::kAveragePool: return of_first(node, 1);
      case OperatorKind::kConvolution:
      case OperatorKind::kConvolutionTranspose:
      case OperatorKind::kAffine:
      case OperatorKind::kTreeEnsemble:
      case OperatorKind::kPairCoupling:
      case OperatorKind::kDecodeJpeg:
      case OperatorKind::kWordPiece:
      case OperatorKind::kDepthToSpace: return of_first(node, 0);
      case OperatorKind::kRecurrent: return recurrent(node);
      case OperatorKind::kReshape:  // above
      case OperatorKind::kAttention:
      case OperatorKind::kReorder: break;
    }
    return std::nullopt;
  }

  // Of the result: where the first operand that has rows has them, its
  // dimensions being the last ones.
  RowPlace aligned_place(const Node& node, size_t rank) {
    for (const ValueIndex input : node.inputs) {
      if (!is_row(input)) continue;
      RowPlace place = *place_of(input);
      place.axis += rank - shape(input).size();
      return place;
    }
    FOLIOT_CHECK(false);
  }

  // A row of an operand that is broadcast to `rank` dimensions.
  std::optional<TermIndex> aligned_row(ValueIndex value, RowPlace place, size_t rank) {
    const size_t missing = rank - shape(value).size();
    const bool is_alike = place.axis < missing || shape(value)[place.axis - missing] == 1;
    if (is_alike) return is_whole(value) ? std::optional(term_of(value)) : fail(kTwoPlaces);
    place.axis -= missing;
    const std::optional<TermIndex> row = row_in(value, place);
    if (!row) why_ = is_whole(value) ? kUnequal : kTwoPlaces;
    return row;
  }

  std::optional<State> elementwise(const Node& node) {
    const size_t rank = shape(node.outputs[0]).size();
    const RowPlace place = aligned_place(node, rank);
    std::vector<TermIndex> inputs;
    for (const ValueIndex input : node.inputs) {
      const auto row = aligned_row(input, place, rank);
      if (!row) return std::nullopt;
      inputs.push_back(*row);
    }
    return result_of(node, std::move(inputs), place);
  }

  std::optional<State> reshape(const Node& node) {
    const auto& row = std::get<Row>(state_of(node.inputs[0]));
    const Shape& target = shape(node.outputs[0]);
    // One that spreads the rows over several dimensions may be undone by the
    // next.
    const std::optional<RowPlace> place = place_of(target, row.stride);
    if (!place) return Row{row.term, row.stride, row.offset};
    return Row{make(node, {row.term}, row_shape(target, *place)), row.stride, row.offset};
  }

  bool has_offset(const Node& node) {
    return std::ranges::any_of(node.inputs, [&](ValueIndex input) { return is_row(input) && offset_in(input) != 0; });
  }
  int64_t offset_in(ValueIndex value) { return std::get<Row>(state_of(value)).offset; }

  struct Offset {
    int64_t step = 0;  // from row to row
    bool first_is_zero = false;
    TermIndex first = kNoTerm;  // that of row 0
  };

  // Of a constant [rows, 1, ...] that grows by the same from row to row.
  std::optional<Offset> offset_of(ValueIndex value) {
    const auto* whole = std::get_if<Whole>(&state_of(value));
    if (whole == nullptr) return std::nullopt;
    const Term term = terms_[whole->term];
    if (term.constant == nullptr || !is_integer(term.type) || term.shape.empty() || term.shape.front() != rows_ ||
        element_count(term.shape) != static_cast<uint64_t>(rows_)) {
      return std::nullopt;
    }
    const std::vector<int64_t> values = to_integers(terms_.constant_of(whole->term));
    const int64_t bound = int64_t{1} << 40;
    for (const int64_t at : values)
      if (at < -bound || at > bound) return std::nullopt;
    const int64_t step = values[1] - values[0];
    for (size_t i = 1; i < values.size(); ++i)
      if (values[i] - values[i - 1] != step) return std::nullopt;
    Shape row = term.shape;
    row.front() = 1;
    return Offset{step, values[0] == 0, terms_.constant(from_integers(term.type, row, std::span(values).first(1)))};
  }

  // What makes positions in all rows together, and what looks up by them.
  std::optional<State> positions_of(const Node& node) {
    switch (node.kind) {
      case OperatorKind::kExpand: return has_offset(node) ? with_offset(node, offset_in(node.inputs[0])) : std::nullopt;
      case OperatorKind::kUnary:
        if (!has_offset(node) || node.attributes.function() != Function::kLinear) return std::nullopt;
        if (const auto range = scaled(node, Range{0, offset_in(node.inputs[0])})) return with_offset(node, range->most);
        return std::nullopt;
      case OperatorKind::kBinary: return node.attributes.function() == Function::kAdd ? moved(node) : std::nullopt;
      case OperatorKind::kWhere: return is_nowhere(node.inputs[2]) ? unless_nowhere(node) : std::nullopt;
      case OperatorKind::kGather:
      case OperatorKind::kScatterElements: return by_position(node);
      default: return std::nullopt;
    }
  }

  // An operator that does to positions what it does to the values of a row.
  std::optional<State> with_offset(const Node& node, int64_t offset) {
    const RowPlace place = aligned_place(node, shape(node.outputs[0]).size());
    State state = result_of(node, operands(node), place);
    std::get<Row>(state).offset = offset;
    return state;
  }

  // Where(inside, positions, kNowhere).
  std::optional<State> unless_nowhere(const Node& node) {
    const ValueIndex inside = node.inputs[0], positions = node.inputs[1];
    const bool fits = is_row(inside) && is_row(positions) && offset_in(inside) == 0 &&
                      place_of(inside) == place_of(positions) && shape(inside) == shape(positions);
    return fits ? std::optional(with_offset(node, offset_in(positions))) : std::nullopt;
  }

  // The sum of values and a constant that has another entry for each row.
  std::optional<State> moved(const Node& node) {
    const size_t moving = is_whole(node.inputs[0]) ? 0 : 1;
    const ValueIndex values = node.inputs[1 - moving];
    if (!is_row(values)) return std::nullopt;
    const std::optional<Offset> offset = offset_of(node.inputs[moving]);
    const RowPlace place = aligned_place(node, shape(node.outputs[0]).size());
    const bool fits = offset && offset->step > 0 && place == RowPlace{.axis = 0, .outer = 1, .inner = 1} &&
                      shape(node.inputs[moving]).size() == shape(node.outputs[0]).size() &&
                      shape(values) == shape(node.outputs[0]);
    if (!fits) return std::nullopt;
    std::vector<TermIndex> inputs = operands(node);
    inputs[moving] = offset->first;
    State state = result_of(node, std::move(inputs), place);
    std::get<Row>(state).offset = offset_in(values) + offset->step;
    return state;
  }

  // Along a dimension in which all rows lie one after another, at positions
  // that stay within a row.
  std::optional<State> by_position(const Node& node) {
    const ValueIndex x = node.inputs[0], indices = node.inputs[1];
    if (!is_row(x) || !is_row(indices) || node.attributes.integer("axis") != 0) return std::nullopt;
    const RowPlace own = *place_of(x), asked = *place_of(indices);
    const std::optional<Range> range = range_of(indices);
    const bool stays = own.axis == 0 && own.outer == 1 && offset_in(x) == 0 && offset_in(indices) == own.inner &&
                       range && range->least >= 0 && range->most < own.inner;
    if (!stays) return std::nullopt;
    if (node.kind == OperatorKind::kGather) return result_of(node, operands(node), asked);
    const ValueIndex updates = node.inputs[2];
    const bool fits = asked.axis == 0 && is_row(updates) && offset_in(updates) == 0 && place_of(updates) == asked;
    return fits ? std::optional(result_of(node, operands(node), own)) : std::nullopt;
  }

  // Works along `axes` of its only operand.
  std::optional<State> along(const Node& node, const std::vector<int64_t>& axes, bool keeps_rank) {
    RowPlace place = *place_of(node.inputs[0]);
    size_t dropped = 0;
    for (const int64_t axis : axes) {
      if (static_cast<size_t>(axis) == place.axis) return fail(kAlongRows);
      if (static_cast<size_t>(axis) < place.axis) ++dropped;
    }
    if (!keeps_rank) place.axis -= dropped;
    return result_of(node, operands(node), place);
  }

  std::optional<State> layer_norm(const Node& node) {
    if (!is_row(node.inputs[0])) return std::nullopt;
    const RowPlace place = *place_of(node.inputs[0]);
    if (static_cast<int64_t>(place.axis) >= node.attributes.integer("axis")) return fail(kAlongRows);
    const size_t rank = shape(node.inputs[0]).size();
    std::vector<TermIndex> inputs;
    for (const ValueIndex input : node.inputs) {
      const auto row = input == kNoValue ? std::optional(kNoTerm) : aligned_row(input, place, rank);
      if (!row) return std::nullopt;
      inputs.push_back(*row);
    }
    return result_of(node, std::move(inputs), place);
  }

  std::optional<State> transpose(const Node& node) {
    RowPlace place = *place_of(node.inputs[0]);
    const auto& permutation = node.attributes.integers("permutation");
    const auto found = std::ranges::find(permutation, static_cast<int64_t>(place.axis));
    place.axis = static_cast<size_t>(found - permutation.begin());
    return result_of(node, operands(node), place);
  }

  std::optional<State> concat(const Node& node) {
    RowPlace place = aligned_place(node, shape(node.outputs[0]).size());
    const bool joins = node.attributes.integer("axis") == static_cast<int64_t>(place.axis);
    std::vector<TermIndex> inputs;
    int64_t outer = 0;
    for (const ValueIndex input : node.inputs) {
      // Of several batches one after another each row has the parts that are
      // its own.
      const std::optional<RowPlace> own = place_of(input);
      if (joins && (!own || own->axis != place.axis || own->inner != place.inner)) return fail(kAlongRows);
      outer += own ? own->outer : 0;
      const auto row = row_in(input, joins ? *own : place);
      if (!row) return fail(is_whole(input) ? kUnequal : kTwoPlaces);
      inputs.push_back(*row);
    }
    if (joins) place.outer = outer;
    return result_of(node, std::move(inputs), place);
  }

  std::optional<State> slice(const Node& node) {
    RowPlace place = *place_of(node.inputs[0]);
    std::vector<int64_t> starts = node.attributes.integers("starts");
    const int64_t step = node.attributes.integers("steps")[place.axis];
    const int64_t before = shape(node.inputs[0])[place.axis], after = shape(node.outputs[0])[place.axis];
    if (starts[place.axis] == 0 && step == 1 && before == after) return result_of(node, operands(node), place);
    // Whole batches of several that lie one after another.
    const int64_t batch = place.inner * rows_;
    if (step != 1 || starts[place.axis] % batch != 0 || after % batch != 0) return fail(kAlongRows);
    starts[place.axis] /= rows_;
    place.outer = after / batch;
    Attributes attributes = node.attributes;
    attributes.set("starts", std::move(starts));
    return result_of(node, operands(node), place, attributes);
  }

  std::optional<State> pad(const Node& node) {
    const RowPlace place = *place_of(node.inputs[0]);
    const auto& pads = node.attributes.integers("pads");
    if (pads[place.axis] != 0 || pads[pads.size() / 2 + place.axis] != 0) return fail(kAlongRows);
    return result_of(node, operands(node), place);
  }

  std::optional<State> resize(const Node& node) {
    const RowPlace place = *place_of(node.inputs[0]);
    const bool is_same = node.attributes.reals("scales")[place.axis] == 1 &&
                         shape(node.inputs[0])[place.axis] == shape(node.outputs[0])[place.axis];
    if (!is_same) return fail(kAlongRows);
    return result_of(node, operands(node), place);
  }

  std::optional<State> gather(const Node& node) {
    const auto axis = static_cast<size_t>(node.attributes.integer("axis"));
    const ValueIndex x = node.inputs[0], indices = node.inputs[1];
    if (is_row(x) && is_row(indices)) return fail("it looks up in all rows what one row asks for");
    RowPlace place = *place_of(is_row(x) ? x : indices);
    if (is_row(indices)) {
      place.axis += axis;
    } else if (place.axis == axis) {
      return fail(kAlongRows);
    } else if (place.axis > axis) {
      place.axis = place.axis + shape(indices).size() - 1;
    }
    return result_of(node, operands(node), place);
  }

  // GatherElements, ScatterElements: all operands have the same dimensions.
  std::optional<State> by_element(const Node& node) {
    const RowPlace place = aligned_place(node, shape(node.outputs[0]).size());
    if (static_cast<int64_t>(place.axis) == node.attributes.integer("axis")) return fail(kAlongRows);
    std::vector<TermIndex> inputs;
    for (const ValueIndex input : node.inputs) {
      const auto row = row_in(input, place);
      if (!row) return fail(is_whole(input) ? kUnequal : kTwoPlaces);
      inputs.push_back(*row);
    }
    return result_of(node, std::move(inputs), place);
  }

  std::optional<State> matmul(const Node& node) {
    const ValueIndex a = node.inputs[0], b = node.inputs[1];
    const ValueIndex bias = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    const size_t rank = shape(node.outputs[0]).size();
    if (is_row(bias)) return std::nullopt;
    RowPlace place = *place_of(is_row(a) ? a : b);
    const size_t own_rank = shape(is_row(a) ? a : b).size();
    const bool is_leading = place.axis + 2 < own_rank;
    place.axis += rank - own_rank;
    if (is_leading) {
      // The last two dimensions of all three stand at the same places.
      const auto left = aligned_row(a, place, rank), right = left ? aligned_row(b, place, rank) : std::nullopt;
      if (!right) return std::nullopt;
      return result_of(node, with_bias({*left, *right}, node, bias), place);
    }
    if (is_row(a) && is_row(b)) return fail(kTwoPlaces);
    const bool is_last = place.axis + 1 == rank;
    const bool transposed = node.attributes.integer(is_row(a) ? "transpose_a" : "transpose_b") != 0;
    // Sums are over the last dimension of a, and the last but one of b.
    if (is_row(a) ? is_last != transposed : is_last == transposed) return fail(kAlongRows);
    place.axis = is_row(a) ? rank - 2 : rank - 1;
    // Each column has its own entry of the bias.
    if (is_row(b) && bias != kNoValue) return std::nullopt;
    return result_of(node, with_bias({term_of(a), term_of(b)}, node, bias), place);
  }

  std::optional<State> block_matmul(const Node& node) {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue && !is_whole(node.inputs[i])) return fail(kTwoPlaces);
    return along(node, {static_cast<int64_t>(shape(node.inputs[0]).size()) - 1}, true);
  }

  std::vector<TermIndex> with_bias(std::vector<TermIndex> inputs, const Node& node, ValueIndex bias) {
    if (node.inputs.size() > 2) inputs.push_back(term_of(bias));
    return inputs;
  }

  // Rows in one of the first dimensions of the first operand, the others being
  // the same for all.
  std::optional<State> of_first(const Node& node, size_t axis_max) {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (!is_whole(node.inputs[i])) return fail(kTwoPlaces);
    const RowPlace place = *place_of(node.inputs[0]);
    if (place.axis > axis_max) return fail(kAlongRows);
    return result_of(node, operands(node), place);
  }

  std::optional<State> recurrent(const Node& node) {
    constexpr size_t kBatchAxis = 1, kResultAxis = 2, kFirstState = 3;
    if (!is_row(node.inputs[0])) return std::nullopt;
    RowPlace place = *place_of(node.inputs[0]);
    if (place.axis != kBatchAxis) return fail(kAlongRows);
    std::vector<TermIndex> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueIndex input = node.inputs[i];
      std::optional<TermIndex> row;
      if (input == kNoValue || (i > 0 && i < kFirstState)) {
        if (!is_whole(input)) return fail(kTwoPlaces);
        row = term_of(input);
      } else {
        row = row_in(input, place);
        if (!row) return fail(is_whole(input) ? kUnequal : kTwoPlaces);
      }
      inputs.push_back(*row);
    }
    place.axis = kResultAxis;
    return result_of(node, std::move(inputs), place);
  }

  const Graph& graph_;
  const int64_t rows_;
  RowTerms& terms_;
  std::vector<State> states_;
  std::map<ValueIndex, const Node*> concats_;  // by their results
  std::string_view why_;                       // of the operator that has no result
  std::map<std::pair<TermIndex, int64_t>, std::optional<TermIndex>> rows_of_whole_;  // by stride
  int depth_ = 0;
};

}  // namespace

std::string RowProof::add(const Graph& graph) {
  const size_t known = terms_.size();
  Interpreter interpreter(graph, terms_);
  std::variant<std::vector<TermIndex>, std::string> rows = interpreter.run();
  if (auto* why = std::get_if<std::string>(&rows)) return std::move(*why);
  auto& outputs = std::get<std::vector<TermIndex>>(rows);
  if (first_size_ == 0) {
    first_size_ = graph.batch_size;
    outputs_ = std::move(outputs);
    return {};
  }
  if (outputs == outputs_) return {};
  const Node* const node = interpreter.first_new(static_cast<TermIndex>(known));
  if (node == nullptr) return fmt::format("its outputs change places with the number of rows");
  return Interpreter::describe(*node, fmt::format("what it computes for a row depends on the number of rows ({} or {})",
                                                  first_size_, graph.batch_size));
}

}  // namespace foliot
