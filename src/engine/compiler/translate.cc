#include "engine/compiler/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"
#include "engine/compiler/scope.h"

namespace foliot {
namespace {

// Nodes that bodies and functions are translated to, each run of a loop counting as one
// more: loops, and functions that call others twice, can multiply a small file.
constexpr int kUnrolledMax = 100'000;
// Bodies and functions within one another.
constexpr int kDepthMax = 64;

using Values = std::vector<ValueIndex>;

class Translator {
 public:
  Translator(const OnnxModel& model, Rebatch rebatch, ConstantPool& pool)
      : model_(model), rebatch_(rebatch), builder_(pool) {}

  Result<Graph> run(const std::vector<Shape>& input_shapes) {
    Scope scope(model_);
    FOLIOT_RETURN_IF_ERROR(add_inputs(input_shapes, scope));
    std::vector<std::string_view> names;
    for (const OnnxValueInfo& output : model_.outputs) names.push_back(output.name);
    FOLIOT_RETURN_IF_ERROR(translate_nodes(scope, names));
    Values outputs;
    for (const OnnxValueInfo& output : model_.outputs) {
      FOLIOT_ASSIGN_OR_RETURN(const ValueIndex value, scope.find(output.name, builder_));
      if (builder_.value(value).type != output.type) {
        return Status::invalid_argument(fmt::format("output '{}' is declared {} and computed as {}", output.name,
                                                    to_string(output.type), to_string(builder_.value(value).type)));
      }
      outputs.push_back(value);
    }
    Graph graph = builder_.take();
    graph.outputs = std::move(outputs);
    return graph;
  }

 private:
  static std::string describe(const OnnxNode& node, size_t i) {
    const std::string label = node.name.empty() ? fmt::format("{}", i) : fmt::format("'{}'", node.name);
    const std::string result = node.outputs.empty() ? "" : fmt::format(", output '{}'", node.outputs[0]);
    return fmt::format("node {} ({}{})", label, node.type, result);
  }

  Status add_inputs(const std::vector<Shape>& shapes, Scope& scope) {
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      const OnnxValueInfo& input = model_.inputs[i];
      Status status = check_shape(input.type, shapes[i]);
      if (!status.ok()) return status.with_context(fmt::format("input '{}'", input.name));
      if (!scope.set(input.name, builder_.add_input(input.name, {input.type, shapes[i]}))) {
        return Status::invalid_argument(fmt::format("input '{}' stands there twice", input.name));
      }
    }
    return {};
  }

  Status translate_nodes(Scope& scope, const std::vector<std::string_view>& outputs) {
    const std::vector<bool> needed = scope.find_needed(outputs);
    for (size_t i = 0; i < scope.nodes().size(); ++i) {
      if (!needed[i]) continue;
      const OnnxNode& node = scope.nodes()[i];
      const Status status = translate_node(scope, node);
      if (!status.ok()) return status.with_context(describe(node, i));
    }
    return {};
  }

  Result<const OnnxOperator*> find_operator(const OnnxNode& node, int64_t opset) const {
    const OnnxOperator* found = find_onnx_operator(node.type, node.domain);
    if (found != nullptr) return found;
    const std::string_view refusal = refusal_of_onnx_operator(node.type, node.domain);
    if (!refusal.empty()) {
      return Status::unimplemented(fmt::format("operator '{}' cannot be served: {}", node.type, refusal));
    }
    const auto other = model_.opsets.find(node.domain);
    const int64_t version = other != model_.opsets.end() ? other->second : opset;
    return Status::unimplemented(fmt::format("operator '{}' of domain '{}', opset {}, is not supported", node.type,
                                             node.domain.empty() ? "ai.onnx" : node.domain, version));
  }

  Status translate_node(Scope& scope, const OnnxNode& written) {
    if (depth_ > 0) FOLIOT_RETURN_IF_ERROR(count_unrolled());
    const std::optional<OnnxNode> resolved = scope.resolved(written);
    const OnnxNode& node = resolved ? *resolved : written;
    Values inputs;
    for (const std::string& name : node.inputs) {
      inputs.push_back(kNoValue);
      if (name.empty()) continue;
      FOLIOT_ASSIGN_OR_RETURN(inputs.back(), scope.find(name, builder_));
    }
    builder_.set_name(!node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0]);
    std::vector<bool> wanted;
    for (const std::string& name : node.outputs) wanted.push_back(!name.empty() && scope.wants(name));
    NodeTranslation translation(node, scope.opset(), rebatch_, builder_, std::move(inputs), std::move(wanted));
    FOLIOT_RETURN_IF_ERROR(translate_as(scope, node, translation));
    FOLIOT_RETURN_IF_ERROR(translation.attribute_status());
    return keep_results(scope, node, translation);
  }

  // Functions of the file come before operators of the same name.
  Status translate_as(Scope& scope, const OnnxNode& node, NodeTranslation& translation) {
    const auto function = model_.functions.find(std::tie(node.domain, node.type, node.overload));
    if (function != model_.functions.end()) return translate_call(function->second, node, translation);
    if (node.domain.empty() && node.type == "If") return translate_if(scope, translation);
    if (node.domain.empty() && node.type == "Loop") return translate_loop(scope, translation);
    if (node.domain.empty() && node.type == "Scan") return translate_scan(scope, translation);
    FOLIOT_ASSIGN_OR_RETURN(const OnnxOperator* const operation, find_operator(node, scope.opset()));
    if (node.inputs.size() > operation->inputs_max) {
      return Status::invalid_argument(
          fmt::format("it has {} inputs, at most {} are possible", node.inputs.size(), operation->inputs_max));
    }
    for (size_t i = 0; i < operation->inputs_min; ++i) {
      if (!translation.has_input(i)) return Status::invalid_argument(fmt::format("input {} is missing", i));
    }
    FOLIOT_RETURN_IF_ERROR(operation->translate(translation));
    // Operators of onnxruntime have gained attributes without a version.
    const bool strict = node.domain == kMicrosoftDomain || node.domain == kFoliotDomain;
    const std::string unread = strict ? translation.unread_attribute() : "";
    if (!unread.empty()) return Status::unimplemented(fmt::format("attribute '{}' is not supported", unread));
    return {};
  }

  static Status keep_results(Scope& scope, const OnnxNode& node, const NodeTranslation& translation) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueIndex result = translation.outputs()[i];
      if (node.outputs[i].empty() || result == kNoValue) continue;
      if (!scope.set(node.outputs[i], result)) {
        return Status::invalid_argument(fmt::format("'{}' is computed twice", node.outputs[i]));
      }
    }
    return {};
  }

  Status count_unrolled() {
    if (++unrolled_ <= kUnrolledMax) return {};
    return Status::resource_exhausted(
        fmt::format("its loops, branches and functions unroll to more than {} nodes", kUnrolledMax));
  }

  Status translate_inner(Scope& scope, const std::vector<std::string_view>& outputs) {
    if (depth_ == kDepthMax) {
      return Status::resource_exhausted(
          fmt::format("loops, branches and functions stand more than {} deep in one another", kDepthMax));
    }
    ++depth_;
    const Status status = translate_nodes(scope, outputs);
    --depth_;
    return status;
  }

  // What the body of a node of `outer` makes of `inputs`.
  Result<Values> run_body(Scope& outer, const OnnxGraph& body, const Values& inputs) {
    Scope scope(body, outer);
    for (size_t i = 0; i < inputs.size(); ++i) scope.set(body.inputs[i], inputs[i]);
    FOLIOT_RETURN_IF_ERROR(translate_inner(scope, {body.outputs.begin(), body.outputs.end()}));
    Values results;
    for (const std::string& name : body.outputs) {
      FOLIOT_ASSIGN_OR_RETURN(results.emplace_back(), scope.find(name, builder_));
      if (results.back() == kNoValue) return Status::invalid_argument(fmt::format("'{}' is left out", name));
    }
    return results;
  }

  Status translate_call(const OnnxFunction& function, const OnnxNode& node, NodeTranslation& call) {
    if (std::ranges::find(calls_, &function) != calls_.end()) {
      return Status::invalid_argument(fmt::format("function '{}' calls itself", node.type));
    }
    const OnnxGraph& body = function.body;
    if (call.input_count() > body.inputs.size() || call.output_count() > body.outputs.size()) {
      return Status::invalid_argument(fmt::format("function '{}' has {} inputs and {} outputs, {} and {} are given",
                                                  node.type, body.inputs.size(), body.outputs.size(),
                                                  call.input_count(), call.output_count()));
    }
    OnnxAttributes arguments = node.attributes;
    arguments.insert(function.defaults.begin(), function.defaults.end());
    Scope scope(function, arguments);
    for (size_t i = 0; i < body.inputs.size(); ++i) scope.set(body.inputs[i], call.input(i));
    std::vector<std::string_view> outputs;
    for (size_t i = 0; i < call.output_count(); ++i) {
      if (call.wants_output(i)) outputs.emplace_back(body.outputs[i]);
    }
    calls_.push_back(&function);
    FOLIOT_RETURN_IF_ERROR(translate_inner(scope, outputs));
    calls_.pop_back();
    for (size_t i = 0; i < call.output_count(); ++i) {
      if (!call.wants_output(i)) continue;
      FOLIOT_ASSIGN_OR_RETURN(const ValueIndex result, scope.find(body.outputs[i], builder_));
      call.set_output(i, result);
    }
    return {};
  }

  // A condition that decides what runs, so it must be known.
  Result<bool> condition(ValueIndex value, std::string_view name) const {
    if (!builder_.value(value).is_constant()) {
      return Status::unimplemented(
          fmt::format("what runs would depend on the data, but a program's order is fixed: its condition ('{}') "
                      "depends on the values of the model's inputs",
                      name));
    }
    const std::vector<int64_t> known = to_integers(builder_.constant(value));
    if (known.size() != 1) return Status::invalid_argument(fmt::format("its condition ('{}') is no scalar", name));
    return known[0] != 0;
  }

  Status translate_if(Scope& scope, NodeTranslation& node) {
    if (!node.has_input(0)) return Status::invalid_argument("its condition is missing");
    FOLIOT_ASSIGN_OR_RETURN(const bool taken, condition(node.input(0), node.input_name(0)));
    FOLIOT_ASSIGN_OR_RETURN(const OnnxGraph* const branch, node.body(taken ? "then_branch" : "else_branch"));
    if (branch->outputs.size() < node.output_count()) return Status::invalid_argument("a branch has too few outputs");
    FOLIOT_ASSIGN_OR_RETURN(const Values results, run_body(scope, *branch, {}));
    for (size_t i = 0; i < node.output_count(); ++i) node.set_output(i, results[i]);
    return {};
  }

  // Inputs from `first` on, which are carried from one run to the next.
  static Result<Values> operands(const NodeTranslation& node, size_t first) {
    Values result;
    for (size_t i = first; i < node.input_count(); ++i) {
      if (!node.has_input(i)) return Status::invalid_argument(fmt::format("input {} is missing", i));
      result.push_back(node.input(i));
    }
    return result;
  }

  static Status check_body(const NodeTranslation& node, const OnnxGraph& body, size_t inputs, size_t outputs_least) {
    if (body.inputs.size() == inputs && body.outputs.size() >= outputs_least) return {};
    return Status::invalid_argument(fmt::format("its body has {} inputs and {} outputs, {} and {} or more are needed",
                                                body.inputs.size(), body.outputs.size(), inputs,
                                                std::max(outputs_least, node.output_count())));
  }

  // The results of all runs, joined along a new dimension.
  Result<ValueIndex> stacked(Values parts, int64_t axis, size_t output) {
    if (parts.empty()) {
      return Status::unimplemented(fmt::format("it runs no times, so the shape of output {} is not known", output));
    }
    Composer c(builder_);
    for (ValueIndex& part : parts) {
      Shape shape = c.shape(part);
      const auto rank = static_cast<int64_t>(shape.size()) + 1;
      const int64_t counted = axis < 0 ? axis + rank : axis;
      if (counted < 0 || counted >= rank) return Status::invalid_argument(fmt::format("there is no axis {}", axis));
      shape.insert(shape.begin() + counted, 1);
      part = c.reshape(part, shape);
    }
    const auto rank = c.rank(parts[0]);
    const ValueIndex joined = c.concat(std::move(parts), axis < 0 ? axis + rank : axis);
    FOLIOT_RETURN_IF_ERROR(c.status());
    return joined;
  }

  // Unrolled: the number of runs must be known, and the condition after each.
  Status translate_loop(Scope& scope, NodeTranslation& node) {
    FOLIOT_ASSIGN_OR_RETURN(const OnnxGraph* const body, node.body("body"));
    int64_t runs = std::numeric_limits<int64_t>::max();
    if (node.has_input(0)) {
      FOLIOT_ASSIGN_OR_RETURN(const std::vector<int64_t> known, node.integers_of(0, "its number of runs"));
      if (known.size() != 1) return Status::invalid_argument("its number of runs is no scalar");
      runs = known[0];
    }
    bool goes_on = true;
    if (node.has_input(1)) {
      FOLIOT_ASSIGN_OR_RETURN(goes_on, condition(node.input(1), node.input_name(1)));
    }
    FOLIOT_ASSIGN_OR_RETURN(Values carried, operands(node, 2));
    FOLIOT_RETURN_IF_ERROR(check_body(node, *body, 2 + carried.size(), 1 + node.output_count()));
    std::vector<Values> collected(body->outputs.size() - 1 - std::min(carried.size(), body->outputs.size() - 1));
    for (int64_t run = 0; run < runs && goes_on; ++run) {
      FOLIOT_RETURN_IF_ERROR(count_unrolled());
      Values inputs{builder_.add_constant(make_constant({}, std::span(&run, 1))),
                    builder_.add_scalar(DataType::kBool, 1)};
      inputs.insert(inputs.end(), carried.begin(), carried.end());
      FOLIOT_ASSIGN_OR_RETURN(const Values results, run_body(scope, *body, inputs));
      if (results.size() < 1 + carried.size()) return Status::invalid_argument("its body has too few outputs");
      FOLIOT_ASSIGN_OR_RETURN(goes_on, condition(results[0], body->outputs[0]));
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = results[1 + i];
      for (size_t i = 0; i < collected.size(); ++i) collected[i].push_back(results[1 + carried.size() + i]);
    }
    const std::vector<int64_t> axes(collected.size(), 0);
    return set_outputs(node, carried, std::move(collected), axes);
  }

  // First what is carried, then what is collected.
  Status set_outputs(NodeTranslation& node, const Values& carried, std::vector<Values> collected,
                     const std::vector<int64_t>& axes) {
    for (size_t i = 0; i < node.output_count(); ++i) {
      if (i < carried.size()) {
        node.set_output(i, carried[i]);
      } else if (node.wants_output(i)) {
        const size_t k = i - carried.size();
        FOLIOT_ASSIGN_OR_RETURN(const ValueIndex joined, stacked(std::move(collected[k]), axes[k], i));
        node.set_output(i, joined);
      }
    }
    return {};
  }

  // An attribute that is a list with a value for each scan, `otherwise` where it is left out.
  static Result<std::vector<int64_t>> per_scan(NodeTranslation& node, std::string_view name, size_t count) {
    std::vector<int64_t> values = node.integers(name, std::vector<int64_t>(count, 0));
    if (values.size() == count) return values;
    return Status::invalid_argument(
        fmt::format("attribute '{}' has {} values instead of {}", name, values.size(), count));
  }

  // Unrolled: a run for each position of a dimension of the scanned operands.
  Status translate_scan(Scope& scope, NodeTranslation& node) {
    if (node.opset() < 9)
      return Status::unimplemented("Scan of opset 8 is not supported; export with opset 9 or later");
    FOLIOT_ASSIGN_OR_RETURN(const OnnxGraph* const body, node.body("body"));
    FOLIOT_ASSIGN_OR_RETURN(Values carried, operands(node, 0));
    const int64_t given = node.integer("num_scan_inputs", 0);
    if (given < 1 || given > static_cast<int64_t>(carried.size())) {
      return Status::invalid_argument(
          fmt::format("attribute 'num_scan_inputs' is {}, with {} inputs in all", given, carried.size()));
    }
    const auto scans = static_cast<size_t>(given);
    const Values scanned(carried.end() - given, carried.end());
    carried.resize(carried.size() - scans);
    FOLIOT_RETURN_IF_ERROR(
        check_body(node, *body, carried.size() + scans, std::max(carried.size(), node.output_count())));
    std::vector<Values> collected(body->outputs.size() - carried.size());
    FOLIOT_ASSIGN_OR_RETURN(std::vector<int64_t> axes, per_scan(node, "scan_input_axes", scans));
    FOLIOT_ASSIGN_OR_RETURN(const auto reversed, per_scan(node, "scan_input_directions", scans));
    FOLIOT_ASSIGN_OR_RETURN(const auto output_axes, per_scan(node, "scan_output_axes", collected.size()));
    FOLIOT_ASSIGN_OR_RETURN(const auto output_reversed, per_scan(node, "scan_output_directions", collected.size()));
    int64_t runs = -1;
    for (size_t i = 0; i < scans; ++i) {
      const Shape& shape = builder_.value(scanned[i]).shape;
      FOLIOT_ASSIGN_OR_RETURN(axes[i], node.axis(axes[i], static_cast<int64_t>(shape.size())));
      const int64_t extent = shape[static_cast<size_t>(axes[i])];
      if (runs >= 0 && extent != runs) {
        return Status::invalid_argument(fmt::format("it scans operands of {} and {} positions", runs, extent));
      }
      runs = extent;
    }
    for (int64_t run = 0; run < runs; ++run) {
      FOLIOT_RETURN_IF_ERROR(count_unrolled());
      Composer c(builder_);
      Values inputs = carried;
      for (size_t i = 0; i < scans; ++i) {
        const ValueIndex part = c.slice(scanned[i], axes[i], reversed[i] != 0 ? runs - 1 - run : run, 1);
        Shape shape = c.shape(part);
        shape.erase(shape.begin() + axes[i]);
        inputs.push_back(c.reshape(part, std::move(shape)));
      }
      FOLIOT_RETURN_IF_ERROR(c.status());
      FOLIOT_ASSIGN_OR_RETURN(const Values results, run_body(scope, *body, inputs));
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = results[i];
      for (size_t i = 0; i < collected.size(); ++i) collected[i].push_back(results[carried.size() + i]);
    }
    for (size_t i = 0; i < collected.size(); ++i) {
      if (output_reversed[i] != 0) std::ranges::reverse(collected[i]);
    }
    return set_outputs(node, carried, std::move(collected), output_axes);
  }

  const OnnxModel& model_;
  Rebatch rebatch_;
  GraphBuilder builder_;
  int unrolled_ = 0;
  int depth_ = 0;
  std::vector<const OnnxFunction*> calls_;  // in progress
};

}  // namespace

Result<Graph> translate(const OnnxModel& model, const std::vector<Shape>& input_shapes, Rebatch rebatch,
                        ConstantPool& pool) {
  return Translator(model, rebatch, pool).run(input_shapes);
}

}  // namespace foliot
