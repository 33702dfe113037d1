#include "engine/compiler/operators/node_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foliot {

NodeTranslation::NodeTranslation(const OnnxNode& node, int64_t opset, Rebatch rebatch, GraphBuilder& builder,
                                 std::vector<ValueIndex> inputs, std::vector<bool> wanted_outputs)
    : node_(node),
      opset_(opset),
      rebatch_(rebatch),
      builder_(builder),
      inputs_(std::move(inputs)),
      wanted_outputs_(std::move(wanted_outputs)),
      outputs_(node.outputs.size(), kNoValue) {}

Result<Constant> NodeTranslation::constant(size_t i, std::string_view what) const {
  if (!has_input(i)) return Status::invalid_argument(fmt::format("{} is missing", what));
  if (!value(i).is_constant()) {
    return Status::invalid_argument(
        fmt::format("{} ('{}') depends on the values of the model's inputs, but shapes must be known when compiling; "
                    "declare every variable dimension under [buckets] in model.toml, or export the model with fixed "
                    "shapes",
                    what, node_.inputs[i]));
  }
  return builder_.constant(inputs_[i]);
}

Result<std::vector<int64_t>> NodeTranslation::integers_of(size_t i, std::string_view what) const {
  FOLIOT_ASSIGN_OR_RETURN(const Constant known, constant(i, what));
  if (known.shape.size() > 1) return Status::invalid_argument(fmt::format("{} is not a list", what));
  return to_integers(known);
}

template <typename T>
T NodeTranslation::attribute(std::string_view name, T otherwise) {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return otherwise;
  read_.emplace(name);
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  attribute_status_ = Status::invalid_argument(fmt::format("attribute '{}' has the wrong type", name));
  return otherwise;
}

std::string NodeTranslation::unread_attribute() const {
  for (const auto& [name, value] : node_.attributes) {
    if (!read_.contains(name)) return name;
  }
  return {};
}

Status NodeTranslation::require(std::string_view name, int64_t value) {
  const int64_t given = integer(name, value);
  if (given == value) return {};
  return Status::unimplemented(fmt::format("attribute '{}' is {}, and only {} is supported", name, given, value));
}

int64_t NodeTranslation::integer(std::string_view name, int64_t otherwise) { return attribute(name, otherwise); }

double NodeTranslation::real(std::string_view name, double otherwise) {
  return attribute(name, static_cast<float>(otherwise));
}

std::string NodeTranslation::text(std::string_view name, std::string otherwise) {
  return attribute(name, std::move(otherwise));
}

std::vector<std::string> NodeTranslation::texts(std::string_view name, std::vector<std::string> otherwise) {
  return attribute(name, std::move(otherwise));
}

std::vector<int64_t> NodeTranslation::integers(std::string_view name, std::vector<int64_t> otherwise) {
  return attribute(name, std::move(otherwise));
}

std::vector<float> NodeTranslation::reals(std::string_view name, std::vector<float> otherwise) {
  return attribute(name, std::move(otherwise));
}

Result<Constant> NodeTranslation::tensor(std::string_view name) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end() || !std::holds_alternative<Constant>(found->second)) {
    return Status::invalid_argument(fmt::format("attribute '{}' is not a tensor", name));
  }
  return std::get<Constant>(found->second);
}

Result<const OnnxGraph*> NodeTranslation::body(std::string_view name) const {
  const auto found = node_.attributes.find(name);
  using Body = std::shared_ptr<const OnnxGraph>;
  const Body* graph = found == node_.attributes.end() ? nullptr : std::get_if<Body>(&found->second);
  if (graph == nullptr) return Status::invalid_argument(fmt::format("attribute '{}' is not a graph", name));
  return graph->get();
}

Result<int64_t> NodeTranslation::axis(int64_t axis, int64_t rank) const {
  const int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted >= 0 && counted < rank) return counted;
  return Status::invalid_argument(fmt::format("there is no dimension {} in a tensor of {}", axis, rank));
}

Result<std::vector<int64_t>> NodeTranslation::axes(const std::vector<int64_t>& axes, int64_t rank) const {
  std::vector<int64_t> result;
  for (int64_t given : axes) {
    FOLIOT_ASSIGN_OR_RETURN(const int64_t counted, axis(given, rank));
    result.push_back(counted);
  }
  std::ranges::sort(result);
  if (std::ranges::adjacent_find(result) != result.end()) return Status::invalid_argument("a dimension is named twice");
  return result;
}

Status NodeTranslation::finish(Result<ValueIndex> result) {
  if (!result.ok()) return result.status();
  if (!outputs_.empty()) outputs_[0] = *result;
  return {};
}

}  // namespace foliot
