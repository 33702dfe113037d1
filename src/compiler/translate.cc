#include "compiler/translate.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

class Translator {
 public:
  Translator(const OnnxModel& model, Rebatch rebatch, ConstantPool& pool)
      : model_(model), rebatch_(rebatch), builder_(pool) {}

  Result<Graph> run(const std::vector<Shape>& input_shapes) {
    FOLIOT_RETURN_IF_ERROR(add_inputs(input_shapes));
    const std::vector<bool> needed = find_needed();
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      if (!needed[i]) continue;
      const Status status = translate_node(model_.nodes[i]);
      if (!status.ok()) return status.with_context(describe(i));
    }
    std::vector<ValueIndex> outputs;
    for (const OnnxValueInfo& output : model_.outputs) {
      FOLIOT_ASSIGN_OR_RETURN(const ValueIndex value, find(output.name));
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
  std::string describe(size_t i) const {
    const OnnxNode& node = model_.nodes[i];
    const std::string label = node.name.empty() ? fmt::format("{}", i) : fmt::format("'{}'", node.name);
    const std::string result = node.outputs.empty() ? "" : fmt::format(", output '{}'", node.outputs[0]);
    return fmt::format("node {} ({}{})", label, node.type, result);
  }

  Status add_inputs(const std::vector<Shape>& shapes) {
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      const OnnxValueInfo& input = model_.inputs[i];
      Status status = check_shape(input.type, shapes[i]);
      if (!status.ok()) return status.with_context(fmt::format("input '{}'", input.name));
      if (values_.contains(input.name)) {
        return Status::invalid_argument(fmt::format("input '{}' stands there twice", input.name));
      }
      values_[input.name] = builder_.add_input(input.name, {input.type, shapes[i]});
    }
    return {};
  }

  // Nodes that an output depends on; the others are not even looked at.
  std::vector<bool> find_needed() {
    for (const OnnxValueInfo& output : model_.outputs) wanted_.insert(output.name);
    std::vector<bool> needed(model_.nodes.size(), false);
    for (size_t i = model_.nodes.size(); i-- > 0;) {
      const OnnxNode& node = model_.nodes[i];
      for (const std::string& output : node.outputs) needed[i] = needed[i] || wanted_.contains(output);
      if (needed[i]) wanted_.insert(node.inputs.begin(), node.inputs.end());
    }
    return needed;
  }

  // Initializers enter the graph when they are first used.
  Result<ValueIndex> find(const std::string& name) {
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    if (const auto found = model_.constants.find(name); found != model_.constants.end()) {
      builder_.set_name(name);
      return values_[name] = builder_.add_constant(found->second);
    }
    return Status::invalid_argument(
        fmt::format("'{}' is neither an input, an initializer nor the result of an earlier node", name));
  }

  Result<const OnnxOperator*> find_operator(const OnnxNode& node) const {
    const OnnxOperator* found = find_onnx_operator(node.type, node.domain);
    if (found != nullptr) return found;
    const std::string_view refusal = refusal_of_onnx_operator(node.type, node.domain);
    if (!refusal.empty()) {
      return Status::unimplemented(fmt::format("operator '{}' cannot be served: {}", node.type, refusal));
    }
    const auto opset = model_.opsets.find(node.domain);
    const int64_t version = opset != model_.opsets.end() ? opset->second : model_.opset;
    return Status::unimplemented(fmt::format("operator '{}' of domain '{}', opset {}, is not supported", node.type,
                                             node.domain.empty() ? "ai.onnx" : node.domain, version));
  }

  Status translate_node(const OnnxNode& node) {
    FOLIOT_ASSIGN_OR_RETURN(const OnnxOperator* const operation, find_operator(node));
    if (node.inputs.size() > operation->inputs_max) {
      return Status::invalid_argument(
          fmt::format("it has {} inputs, at most {} are possible", node.inputs.size(), operation->inputs_max));
    }
    std::vector<ValueIndex> inputs;
    for (const std::string& name : node.inputs) {
      inputs.push_back(kNoValue);
      if (name.empty()) continue;
      FOLIOT_ASSIGN_OR_RETURN(inputs.back(), find(name));
    }
    builder_.set_name(!node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0]);
    std::vector<bool> wanted;
    for (const std::string& name : node.outputs) wanted.push_back(!name.empty() && wanted_.contains(name));
    NodeTranslation translation(node, model_.opset, rebatch_, builder_, std::move(inputs), std::move(wanted));
    for (size_t i = 0; i < operation->inputs_min; ++i) {
      if (!translation.has_input(i)) return Status::invalid_argument(fmt::format("input {} is missing", i));
    }
    FOLIOT_RETURN_IF_ERROR(operation->translate(translation));
    FOLIOT_RETURN_IF_ERROR(translation.attribute_status());
    return keep_results(node, translation);
  }

  Status keep_results(const OnnxNode& node, const NodeTranslation& translation) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueIndex result = translation.outputs()[i];
      if (node.outputs[i].empty() || result == kNoValue) continue;
      if (model_.constants.contains(node.outputs[i]) || !values_.emplace(node.outputs[i], result).second) {
        return Status::invalid_argument(fmt::format("'{}' is computed twice", node.outputs[i]));
      }
    }
    return {};
  }

  const OnnxModel& model_;
  Rebatch rebatch_;
  GraphBuilder builder_;
  std::set<std::string_view> wanted_;  // names that a needed node or an output uses
  std::map<std::string, ValueIndex> values_;
};

}  // namespace

Result<Graph> translate(const OnnxModel& model, const std::vector<Shape>& input_shapes, Rebatch rebatch,
                        ConstantPool& pool) {
  return Translator(model, rebatch, pool).run(input_shapes);
}

}  // namespace foliot
