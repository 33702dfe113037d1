// NodeTranslation: one ONNX node on its way into a device's graph: its operands,
// attributes and results as the functions that translate operators see them.
#ifndef FOLIOT_ENGINE_COMPILER_OPERATORS_NODE_TRANSLATION_H_
#define FOLIOT_ENGINE_COMPILER_OPERATORS_NODE_TRANSLATION_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compiler/graph_builder.h"
#include "engine/compiler/onnx_model.h"
#include "foundation/base/status.h"

namespace foliot {

// A model whose batch dimension is fixed writes it into constants, too. `from`
// is that size and `to` the one that is being compiled; equal: nothing to do.
struct Rebatch {
  int64_t from = 1;
  int64_t to = 1;
  bool is_needed() const { return from != to; }
};

class NodeTranslation {
 public:
  // `inputs`: the values of node.inputs, kNoValue where left out.
  // `wanted_outputs`: for each of node.outputs, whether anything uses it.
  NodeTranslation(const OnnxNode& node, int64_t opset, Rebatch rebatch, GraphBuilder& builder,
                  std::vector<ValueIndex> inputs, std::vector<bool> wanted_outputs);

  const std::string& type() const { return node_.type; }
  int64_t opset() const { return opset_; }
  Rebatch rebatch() const { return rebatch_; }
  GraphBuilder& builder() { return builder_; }

  size_t input_count() const { return inputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i] != kNoValue; }
  // kNoValue where left out.
  ValueIndex input(size_t i) const { return i < inputs_.size() ? inputs_[i] : kNoValue; }
  // REQUIRES: has_input(i). Valid until the builder adds a value.
  const Value& value(size_t i) const { return builder_.value(inputs_[i]); }
  Shape shape(size_t i) const { return value(i).shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(value(i).shape.size()); }
  // REQUIRES: has_input(i).
  const std::string& input_name(size_t i) const { return node_.inputs[i]; }
  // An operand that must be known when compiling; the error says how.
  Result<Constant> constant(size_t i, std::string_view what) const;
  Result<std::vector<int64_t>> integers_of(size_t i, std::string_view what) const;

  // Attributes; the default where absent. One of another type makes
  // attribute_status() fail, and reads as the default.
  bool has_attribute(std::string_view name) const { return node_.attributes.find(name) != node_.attributes.end(); }
  int64_t integer(std::string_view name, int64_t otherwise);
  double real(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string otherwise);
  std::vector<std::string> texts(std::string_view name, std::vector<std::string> otherwise = {});
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {});
  std::vector<float> reals(std::string_view name, std::vector<float> otherwise = {});
  Result<Constant> tensor(std::string_view name) const;
  Result<const OnnxGraph*> body(std::string_view name) const;
  const Status& attribute_status() const { return attribute_status_; }
  // The first attribute that was not asked for; empty: all were.
  std::string unread_attribute() const;
  // An attribute of which this value alone is supported.
  Status require(std::string_view name, int64_t value);

  // A dimension of a tensor of `rank`, counted from the end if negative.
  Result<int64_t> axis(int64_t axis, int64_t rank) const;
  // Ascending, each once.
  Result<std::vector<int64_t>> axes(const std::vector<int64_t>& axes, int64_t rank) const;

  size_t output_count() const { return node_.outputs.size(); }
  bool wants_output(size_t i) const { return i < wanted_outputs_.size() && wanted_outputs_[i]; }
  void set_output(size_t i, ValueIndex value) { outputs_[i] = value; }
  // The node's only result, or why there is none.
  Status finish(Result<ValueIndex> result);
  // kNoValue where none was set.
  const std::vector<ValueIndex>& outputs() const { return outputs_; }

 private:
  template <typename T>
  T attribute(std::string_view name, T otherwise);

  const OnnxNode& node_;
  int64_t opset_;
  Rebatch rebatch_;
  GraphBuilder& builder_;
  std::vector<ValueIndex> inputs_;
  std::vector<bool> wanted_outputs_;
  std::vector<ValueIndex> outputs_;
  Status attribute_status_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_OPERATORS_NODE_TRANSLATION_H_
