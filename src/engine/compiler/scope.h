// Scope: the names that nodes of one graph can use when they are translated: its own values
// and initializers and, in the body of an If, Loop or Scan, those of the graphs around it.
#ifndef FOLIOT_ENGINE_COMPILER_SCOPE_H_
#define FOLIOT_ENGINE_COMPILER_SCOPE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compiler/graph_builder.h"
#include "engine/compiler/onnx_model.h"
#include "foundation/base/status.h"

namespace foliot {

class Scope {
 public:
  // Of a model. All arguments must outlive it.
  explicit Scope(const OnnxModel& model) : nodes_(model.nodes), constants_(model.constants), opset_(model.opset) {}
  // Of the body of a node of `outer`.
  Scope(const OnnxGraph& body, Scope& outer)
      : nodes_(body.nodes), constants_(body.constants), opset_(outer.opset_), outer_(&outer) {}
  // Of a function that is called with these attributes, its defaults included.
  Scope(const OnnxFunction& function, const OnnxAttributes& arguments)
      : nodes_(function.body.nodes),
        constants_(function.body.constants),
        opset_(function.opset),
        arguments_(&arguments) {}

  const std::vector<OnnxNode>& nodes() const { return nodes_; }
  int64_t opset() const { return opset_; }

  // False if the name has a value. kNoValue: an operand that a call leaves out.
  bool set(const std::string& name, ValueIndex value);
  // Initializers enter the graph when they are first used.
  Result<ValueIndex> find(const std::string& name, GraphBuilder& builder);

  // The node with a function's arguments in place of references to them; nullopt: it has none.
  std::optional<OnnxNode> resolved(const OnnxNode& node) const;

  // Nodes that one of `outputs` depends on; the others are not even looked at. The names
  // must outlive the scope.
  std::vector<bool> find_needed(const std::vector<std::string_view>& outputs);
  // Whether a needed node or an output uses the name. REQUIRES: find_needed() called.
  bool wants(const std::string& name) const { return wanted_.contains(name); }

 private:
  const std::vector<OnnxNode>& nodes_;
  const std::map<std::string, Constant>& constants_;
  int64_t opset_;
  Scope* outer_ = nullptr;
  const OnnxAttributes* arguments_ = nullptr;
  std::set<std::string_view> wanted_;
  std::map<std::string, ValueIndex> values_;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_SCOPE_H_
