// Recurrent networks. What is usual is one operator; of others the steps are written
// out one after another: the length of a sequence is known when compiling.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

// One of the functions that a gate can have.
struct GateActivation {
  Function function;
  double alpha, beta;  // defaults
  // How many of these two the node's lists may give.
  int parameters = 0;
};

Result<GateActivation> find_activation(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "sigmoid") return GateActivation{Function::kSigmoid, 0, 0};
  if (name == "tanh") return GateActivation{Function::kTanh, 0, 0};
  if (name == "relu") return GateActivation{Function::kRelu, 0, 0};
  if (name == "affine") return GateActivation{Function::kLinear, 1, 0, 2};
  if (name == "leakyrelu") return GateActivation{Function::kLeakyRelu, 0.01, 0, 1};
  if (name == "elu") return GateActivation{Function::kElu, 1, 0, 1};
  if (name == "hardsigmoid") return GateActivation{Function::kHardSigmoid, 0.2, 0.5, 2};
  if (name == "softplus") return GateActivation{Function::kSoftplus, 0, 0};
  return Status::unimplemented("activation '" + name + "' is not supported");
}

// What the three kinds of network have in common, for one direction.
struct Cell {
  std::vector<GateActivation> activations;
  double clip;
  ValueIndex w, r;            // [gates * hidden, input], [gates * hidden, hidden]
  ValueIndex w_bias, r_bias;  // [1, gates * hidden] each; kNoValue: none
  ValueIndex peepholes;       // [1, 3 * hidden]; kNoValue: none
  int64_t hidden;
};

ValueIndex gate(Composer& c, ValueIndex all, int64_t position, int64_t hidden) {
  return c.slice(all, c.rank(all) - 1, position * hidden, hidden);
}

ValueIndex plus(Composer& c, ValueIndex x, ValueIndex bias) { return bias == kNoValue ? x : c.add(x, bias); }

// The activation of what is limited to [-clip, clip].
ValueIndex activate(Composer& c, const Cell& cell, size_t which, ValueIndex x) {
  if (cell.clip > 0) x = c.unary(Function::kClip, x, -cell.clip, cell.clip);
  const GateActivation& activation = cell.activations[which];
  return c.unary(activation.function, x, activation.alpha, activation.beta);
}

struct State {
  ValueIndex h = kNoValue, cell = kNoValue;  // [batch, hidden]
};

// Each takes x * W' + its bias: [batch, gates * hidden].
State step_rnn(Composer& c, const Cell& cell, ValueIndex input, State state) {
  const ValueIndex recurrent = plus(c, c.matmul(state.h, cell.r, false, true), cell.r_bias);
  return {.h = activate(c, cell, 0, c.add(input, recurrent)), .cell = kNoValue};
}

State step_gru(Composer& c, const Cell& cell, bool linear_before_reset, ValueIndex input, State state) {
  const int64_t n = cell.hidden;
  const auto part = [&](ValueIndex all, int64_t first, int64_t count) {
    return all == kNoValue ? kNoValue : c.slice(all, c.rank(all) - 1, first * n, count * n);
  };
  const ValueIndex r_zr = c.slice(cell.r, 0, 0, 2 * n), r_h = c.slice(cell.r, 0, 2 * n, n);
  const ValueIndex both =
      c.add(part(input, 0, 2), plus(c, c.matmul(state.h, r_zr, false, true), part(cell.r_bias, 0, 2)));
  const ValueIndex update = activate(c, cell, 0, gate(c, both, 0, n));
  const ValueIndex reset = activate(c, cell, 0, gate(c, both, 1, n));
  const ValueIndex bias = part(cell.r_bias, 2, 1);
  const ValueIndex recurrent = linear_before_reset ? c.mul(reset, plus(c, c.matmul(state.h, r_h, false, true), bias))
                                                   : plus(c, c.matmul(c.mul(reset, state.h), r_h, false, true), bias);
  const ValueIndex fresh = activate(c, cell, 1, c.add(part(input, 2, 1), recurrent));
  // (1 - z) * fresh + z * h
  return {.h = c.add(fresh, c.mul(update, c.sub(state.h, fresh))), .cell = kNoValue};
}

State step_lstm(Composer& c, const Cell& cell, bool input_forget, ValueIndex input, State state) {
  const int64_t n = cell.hidden;
  const ValueIndex all = c.add(input, plus(c, c.matmul(state.h, cell.r, false, true), cell.r_bias));
  // Gates stand as input, output, forget, cell; peepholes as input, output, forget.
  const auto peeped = [&](int64_t position, ValueIndex seen) {
    const ValueIndex x = gate(c, all, position, n);
    return cell.peepholes == kNoValue ? x : c.add(x, c.mul(gate(c, cell.peepholes, position, n), seen));
  };
  const ValueIndex in = activate(c, cell, 0, peeped(0, state.cell));
  const ValueIndex forget = input_forget ? c.linear(in, -1, 1) : activate(c, cell, 0, peeped(2, state.cell));
  const ValueIndex candidate = activate(c, cell, 1, gate(c, all, 3, n));
  State next;
  next.cell = c.add(c.mul(forget, state.cell), c.mul(in, candidate));
  const ValueIndex out = activate(c, cell, 0, peeped(1, next.cell));
  const GateActivation& last = cell.activations[2];
  next.h = c.mul(out, c.unary(last.function, next.cell, last.alpha, last.beta));
  return next;
}

class RecurrentNetwork {
 public:
  RecurrentNetwork(NodeTranslation& node, int64_t gates, std::vector<std::string> activations)
      : node_(node), c_(node.builder()), gates_(gates), default_activations_(std::move(activations)) {}

  Status run() {
    FOLIOT_RETURN_IF_ERROR(read());
    FOLIOT_ASSIGN_OR_RETURN(const bool usual, is_usual());
    return usual ? run_whole() : run_steps();
  }

 private:
  // Whether OperatorKind::kRecurrent does it.
  Result<bool> is_usual() {
    for (int64_t d = 0; d < directions_; ++d) {
      FOLIOT_ASSIGN_OR_RETURN(const std::vector<GateActivation> activations, read_activations(d));
      for (size_t i = 0; i < activations.size(); ++i)
        if (activations[i].function != find_activation(default_activations_[i])->function) return false;
    }
    const DataType type = c_.type(x_);
    const bool narrow_enough = type == DataType::kFloat32 || type == DataType::kFloat16 || type == DataType::kBfloat16;
    const bool own_lstm = !is_lstm() || (!node_.has_input(7) && node_.integer("input_forget", 0) == 0);
    const bool own_gru = node_.type() != "GRU" || node_.integer("linear_before_reset", 0) != 0;
    return narrow_enough && own_lstm && own_gru && lengths_ == kNoValue && node_.real("clip", 0) == 0 && batch_ > 0 &&
           hidden_ > 0;
  }

  Status run_whole() {
    const int64_t width = gates_ * hidden_;
    const ValueIndex weights = c_.reshape(node_.input(1), {directions_ * width, c_.shape(x_)[2]});
    ValueIndex input = c_.matmul(x_, weights, false, true), last_bias = kNoValue;
    if (node_.has_input(3)) {
      const ValueIndex w_bias = c_.slice(node_.input(3), 1, 0, width);
      ValueIndex r_bias = c_.slice(node_.input(3), 1, width, width);
      if (node_.type() == "GRU") {
        last_bias = c_.slice(r_bias, 1, 2 * hidden_, hidden_);
        r_bias = c_.pad(c_.slice(r_bias, 1, 0, 2 * hidden_), {0, 0, 0, hidden_});
      }
      input = c_.add(input, c_.reshape(c_.add(w_bias, r_bias), {directions_ * width}));
    }
    const auto first_state = [&](size_t i) {
      if (!node_.has_input(i)) return kNoValue;
      const ValueIndex all = layout_ == 0 ? node_.input(i) : c_.transpose(node_.input(i), {1, 0, 2});
      return c_.reshape(all, {directions_, batch_, hidden_});
    };
    Attributes attributes;
    attributes.set("cell", std::string(is_lstm() ? "lstm" : node_.type() == "GRU" ? "gru" : "rnn"));
    attributes.set("direction", direction_);
    const ValueIndex recurrent = c_.reshape(node_.input(2), {directions_, gates_, hidden_, hidden_});
    const ValueIndex all = c_.emit(
        OperatorKind::kRecurrent, {input, recurrent, last_bias, first_state(5), is_lstm() ? first_state(6) : kNoValue},
        std::move(attributes),
        ValueType{c_.type(input), {length_ + (is_lstm() ? 1 : 0), directions_, batch_, hidden_}});
    return finish_whole(all);
  }

  // `all`: the states after each step; of an LSTM also the last cells.
  Status finish_whole(ValueIndex all) {
    const auto step = [&](int64_t i) { return c_.reshape(c_.slice(all, 0, i, 1), {directions_, batch_, hidden_}); };
    const auto finish_state = [&](ValueIndex state, size_t output) {
      return c_.finish(node_, layout_ == 0 ? state : c_.transpose(state, {1, 0, 2}), output);
    };
    if (is_lstm()) FOLIOT_RETURN_IF_ERROR(finish_state(step(length_), 2));
    // The backward direction ends at the first step.
    ValueIndex last = step(direction_ == "reverse" ? 0 : length_ - 1);
    if (directions_ == 2) last = c_.concat({c_.slice(last, 0, 0, 1), c_.slice(step(0), 0, 1, 1)}, 0);
    FOLIOT_RETURN_IF_ERROR(finish_state(last, 1));
    const ValueIndex y = c_.slice(all, 0, 0, length_);
    return c_.finish(node_, layout_ == 0 ? y : c_.transpose(y, {2, 0, 1, 3}));
  }

  Status run_steps() {
    std::vector<ValueIndex> sequences, last_h, last_cell;
    for (int64_t d = 0; d < directions_; ++d) {
      FOLIOT_ASSIGN_OR_RETURN(const Cell cell, read_cell(d));
      const bool backwards = direction_ == "reverse" || d == 1;
      const State last = run_direction(cell, d, backwards);
      sequences.push_back(c_.concat(outputs_, 0));
      last_h.push_back(c_.reshape(last.h, {1, batch_, hidden_}));
      if (is_lstm()) last_cell.push_back(c_.reshape(last.cell, {1, batch_, hidden_}));
    }
    const std::vector<int64_t> batch_first{1, 0, 2};
    const auto finish_state = [&](std::vector<ValueIndex> states, size_t output) {
      const ValueIndex state = c_.concat(std::move(states), 0);
      return c_.finish(node_, layout_ == 0 ? state : c_.transpose(state, batch_first), output);
    };
    if (is_lstm()) FOLIOT_RETURN_IF_ERROR(finish_state(std::move(last_cell), 2));
    FOLIOT_RETURN_IF_ERROR(finish_state(std::move(last_h), 1));
    const ValueIndex y = c_.concat(std::move(sequences), 1);
    return c_.finish(node_, layout_ == 0 ? y : c_.transpose(y, {2, 0, 1, 3}));
  }

  bool is_lstm() const { return node_.type() == "LSTM"; }

  Status read() {
    direction_ = node_.text("direction", "forward");
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional") {
      return Status::invalid_argument("direction is '" + direction_ + "'");
    }
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    layout_ = node_.integer("layout", 0);
    if (node_.rank(0) != 3 || node_.rank(1) != 3 || node_.rank(2) != 3) {
      return Status::invalid_argument("input and weights must have three dimensions");
    }
    x_ = layout_ == 0 ? node_.input(0) : c_.transpose(node_.input(0), {1, 0, 2});
    const Shape x = c_.shape(x_), w = node_.shape(1), r = node_.shape(2);
    length_ = x[0];
    batch_ = x[1];
    hidden_ = r[2];
    if (length_ < 1 || w != Shape{directions_, gates_ * hidden_, x[2]} ||
        r != Shape{directions_, gates_ * hidden_, hidden_}) {
      return Status::invalid_argument(
          fmt::format("weights {} and {} do not fit input {}", to_string(w), to_string(r), to_string(x)));
    }
    if (node_.has_input(3) && node_.shape(3) != Shape{directions_, 2 * gates_ * hidden_}) {
      return Status::invalid_argument("the bias does not fit the weights");
    }
    if (node_.has_input(4)) {
      lengths_ = c_.reshape(c_.cast(node_.input(4), DataType::kInt64), {batch_, 1});
    }
    return c_.status();
  }

  Result<Cell> read_cell(int64_t d) {
    Cell cell{};
    FOLIOT_ASSIGN_OR_RETURN(cell.activations, read_activations(d));
    cell.clip = node_.real("clip", 0);
    cell.hidden = hidden_;
    const auto of_direction = [&](size_t i) {
      Shape shape = node_.shape(i);
      const ValueIndex part = c_.slice(node_.input(i), 0, d, 1);
      shape.erase(shape.begin());
      if (shape.size() == 1) shape.insert(shape.begin(), 1);
      return c_.reshape(part, shape);
    };
    cell.w = of_direction(1);
    cell.r = of_direction(2);
    cell.w_bias = cell.r_bias = cell.peepholes = kNoValue;
    if (node_.has_input(3)) {
      const ValueIndex bias = of_direction(3);
      cell.w_bias = c_.slice(bias, 1, 0, gates_ * hidden_);
      cell.r_bias = c_.slice(bias, 1, gates_ * hidden_, gates_ * hidden_);
    }
    if (is_lstm() && node_.has_input(7)) {
      if (node_.shape(7) != Shape{directions_, 3 * hidden_}) return Status::invalid_argument("peepholes do not fit");
      cell.peepholes = of_direction(7);
    }
    return cell;
  }

  // Those of a direction. Alphas and betas stand in their lists one after another, of the functions that have them
  // only.
  Result<std::vector<GateActivation>> read_activations(int64_t d) {
    const size_t count = default_activations_.size();
    const std::vector<std::string> names = node_.texts("activations", default_activations_);
    const std::vector<float> alphas = node_.reals("activation_alpha"), betas = node_.reals("activation_beta");
    const size_t first = names.size() == count ? 0 : static_cast<size_t>(d) * count;
    if (names.size() < first + count) return Status::invalid_argument("there are too few activations");
    std::vector<GateActivation> result;
    size_t alpha = 0, beta = 0;
    for (size_t i = 0; i < first + count; ++i) {
      FOLIOT_ASSIGN_OR_RETURN(GateActivation activation, find_activation(names[i]));
      if (activation.parameters > 0 && alpha < alphas.size()) activation.alpha = alphas[alpha++];
      if (activation.parameters > 1 && beta < betas.size()) activation.beta = betas[beta++];
      if (i >= first) result.push_back(activation);
    }
    return result;
  }

  ValueIndex initial(size_t i, int64_t d) {
    if (!node_.has_input(i)) return c_.expand(c_.like(x_, 0), {batch_, hidden_});
    const ValueIndex all = layout_ == 0 ? node_.input(i) : c_.transpose(node_.input(i), {1, 0, 2});
    return c_.reshape(c_.slice(all, 0, d, 1), {batch_, hidden_});
  }

  // The last state; the outputs, [1, 1, batch, hidden] each, are in outputs_, by time.
  State run_direction(const Cell& cell, int64_t d, bool backwards) {
    State state{.h = initial(5, d), .cell = is_lstm() ? initial(6, d) : kNoValue};
    outputs_.assign(static_cast<size_t>(length_), kNoValue);
    // One product for the whole sequence.
    const ValueIndex inputs = plus(c_, c_.matmul(x_, cell.w, false, true), cell.w_bias);
    for (int64_t i = 0; i < length_; ++i) {
      const int64_t t = backwards ? length_ - 1 - i : i;
      const ValueIndex input = c_.reshape(c_.slice(inputs, 0, t, 1), {batch_, gates_ * hidden_});
      State next = step(cell, input, state);
      ValueIndex output = next.h;
      if (lengths_ != kNoValue) {  // a sequence that is over keeps its state and gives zeros
        const ValueIndex runs =
            c_.binary(Function::kLess, c_.scalar(DataType::kInt64, static_cast<double>(t)), lengths_);
        output = c_.where(runs, next.h, c_.like(next.h, 0));
        next.h = c_.where(runs, next.h, state.h);
        if (is_lstm()) next.cell = c_.where(runs, next.cell, state.cell);
      }
      outputs_[static_cast<size_t>(t)] = c_.reshape(output, {1, 1, batch_, hidden_});
      state = next;
    }
    return state;
  }

  State step(const Cell& cell, ValueIndex input, State state) {
    if (is_lstm()) return step_lstm(c_, cell, node_.integer("input_forget", 0) != 0, input, state);
    if (node_.type() == "GRU") return step_gru(c_, cell, node_.integer("linear_before_reset", 0) != 0, input, state);
    return step_rnn(c_, cell, input, state);
  }

  NodeTranslation& node_;
  Composer c_;
  int64_t gates_;
  std::vector<std::string> default_activations_;
  std::string direction_;
  int64_t directions_ = 1, layout_ = 0, length_ = 0, batch_ = 0, hidden_ = 0;
  ValueIndex x_ = kNoValue;        // [length, batch, input]
  ValueIndex lengths_ = kNoValue;  // [batch, 1]
  std::vector<ValueIndex> outputs_;
};

Status lstm(NodeTranslation& node) { return RecurrentNetwork(node, 4, {"Sigmoid", "Tanh", "Tanh"}).run(); }
Status gru(NodeTranslation& node) { return RecurrentNetwork(node, 3, {"Sigmoid", "Tanh"}).run(); }
Status rnn(NodeTranslation& node) { return RecurrentNetwork(node, 1, {"Tanh"}).run(); }

constexpr OnnxOperator kRecurrentOperators[] = {
    {"LSTM", 3, 8, lstm},
    {"GRU", 3, 6, gru},
    {"RNN", 3, 6, rnn},
};

}  // namespace

std::span<const OnnxOperator> recurrent_operators() { return kRecurrentOperators; }

}  // namespace foliot
