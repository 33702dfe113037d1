#include "engine/compiler/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/compiler/node_order.h"

namespace foliot {
bool Scope::set(const std::string& name, ValueIndex value) {
  return !constants_.contains(name) && values_.emplace(name, value).second;
}

Result<ValueIndex> Scope::find(const std::string& name, GraphBuilder& builder) {
  for (Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (const auto found = scope->values_.find(name); found != scope->values_.end()) return found->second;
    if (const auto found = scope->constants_.find(name); found != scope->constants_.end()) {
      builder.set_name(name);
      return scope->values_[name] = builder.add_constant(found->second);
    }
  }
  return Status::invalid_argument(
      fmt::format("'{}' is neither an input, an initializer nor the result of an earlier node", name));
}

std::optional<OnnxNode> Scope::resolved(const OnnxNode& node) const {
  const auto is_reference = [](const auto& entry) {
    return std::holds_alternative<OnnxAttributeReference>(entry.second);
  };
  if (std::ranges::none_of(node.attributes, is_reference)) return std::nullopt;
  const Scope* scope = this;
  while (scope->arguments_ == nullptr && scope->outer_ != nullptr) scope = scope->outer_;
  OnnxNode result = node;
  for (const auto& [name, attribute] : node.attributes) {
    const auto* reference = std::get_if<OnnxAttributeReference>(&attribute);
    if (reference == nullptr) continue;
    result.attributes.erase(name);
    if (scope->arguments_ == nullptr) continue;
    const auto found = scope->arguments_->find(reference->name);
    if (found != scope->arguments_->end()) result.attributes.emplace(name, found->second);
  }
  return result;
}

std::vector<bool> Scope::find_needed(const std::vector<std::string_view>& outputs) {
  wanted_.insert(outputs.begin(), outputs.end());
  std::vector<bool> needed(nodes_.size(), false);
  for (size_t i = nodes_.size(); i-- > 0;) {
    for (const std::string& output : nodes_[i].outputs) needed[i] = needed[i] || wanted_.contains(output);
    if (needed[i]) add_names(nodes_[i], &wanted_);
  }
  return needed;
}

}  // namespace foliot
