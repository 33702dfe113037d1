#include "engine/compiler/node_order.h"

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <utility>
#include <variant>

namespace foliot {

void add_names(const OnnxNode& node, std::set<std::string_view>* names) {
  names->insert(node.inputs.begin(), node.inputs.end());
  for (const auto& [name, attribute] : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute);
    if (body == nullptr) continue;
    names->insert((*body)->outputs.begin(), (*body)->outputs.end());
    for (const OnnxNode& inner : (*body)->nodes) add_names(inner, names);
  }
}

void sort_nodes(std::vector<OnnxNode>* nodes) {
  std::map<std::string_view, size_t> makers;
  for (size_t i = 0; i < nodes->size(); ++i)
    for (const std::string& output : (*nodes)[i].outputs)
      if (!output.empty()) makers.emplace(output, i);
  std::vector<std::vector<size_t>> users(nodes->size());
  std::vector<size_t> waits(nodes->size(), 0);
  bool sorted = true;
  for (size_t i = 0; i < nodes->size(); ++i) {
    std::set<std::string_view> names;
    add_names((*nodes)[i], &names);
    std::set<size_t> before;
    for (std::string_view name : names)
      if (const auto maker = makers.find(name); maker != makers.end() && maker->second != i)
        before.insert(maker->second);
    for (size_t maker : before) users[maker].push_back(i);
    waits[i] = before.size();
    sorted = sorted && (before.empty() || *before.rbegin() < i);
  }
  if (sorted) return;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes->size(); ++i)
    if (waits[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (size_t user : users[order.back()])
      if (--waits[user] == 0) ready.push(user);
  }
  for (size_t i = 0; i < nodes->size(); ++i)
    if (waits[i] != 0) order.push_back(i);
  std::vector<OnnxNode> result;
  result.reserve(nodes->size());
  for (size_t i : order) result.push_back(std::move((*nodes)[i]));
  *nodes = std::move(result);
}

}  // namespace foliot
