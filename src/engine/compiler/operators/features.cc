// What makes features of raw columns, and labels of positions, of ai.onnx.ml.
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "engine/compiler/operators/attribute_check.h"
#include "engine/compiler/operators/composer.h"
#include "engine/compiler/operators/onnx_operator.h"

namespace foliot {
namespace {

constexpr const char* kStrings = "it maps strings, and only tensors of numbers can be served";

// Of one value for each feature (the last dimension), or one for all.
Status check_per_feature(NodeTranslation& node, std::string_view name, size_t count) {
  const int64_t features = node.rank(0) == 0 ? 1 : node.shape(0).back();
  if (count == 1 || static_cast<int64_t>(count) == features) return {};
  return invalid("attribute '{}' has {} values for {} features", name, count, features);
}

ValueIndex row_of(Composer& c, const std::vector<float>& values) {
  return c.constant(make_constant({static_cast<int64_t>(values.size())}, std::span(values)));
}

// (x - offset) * scale
Status scaler(NodeTranslation& node) {
  const std::vector<float> offset = node.reals("offset"), scale = node.reals("scale");
  FOLIOT_RETURN_IF_ERROR(check_per_feature(node, "offset", offset.size()));
  FOLIOT_RETURN_IF_ERROR(check_per_feature(node, "scale", scale.size()));
  Composer c(node.builder());
  const ValueIndex x = c.cast(node.input(0), DataType::kFloat32);
  return c.finish(node, c.mul(c.sub(x, row_of(c, offset)), row_of(c, scale)));
}

// Each row divided by its norm, where that is not zero.
Status normalizer(NodeTranslation& node) {
  Composer c(node.builder());
  const std::string norm = node.text("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") return invalid("norm is '{}', not MAX, L1 or L2", norm);
  const Function function = norm == "MAX" ? Function::kMax : norm == "L1" ? Function::kL1 : Function::kL2;
  const ValueIndex x = c.cast(node.input(0), DataType::kFloat32);
  const ValueIndex length = c.reduce(function, x, {c.rank(x) - 1});
  const ValueIndex nothing = c.binary(Function::kEqual, length, c.like(length, 0));
  return c.finish(node, c.div(x, c.where(nothing, c.like(length, 1), length)));
}

Status binarizer(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  const ValueIndex above = c.binary(Function::kGreater, x, c.like(x, node.real("threshold", 0)));
  return c.finish(node, c.cast(above, c.type(x)));
}

// Another value for one that stands for "missing", NaN as a rule.
Status imputer(NodeTranslation& node) {
  Composer c(node.builder());
  const ValueIndex x = node.input(0);
  const bool whole = is_integer(c.type(x));
  const char* name = whole ? "imputed_value_int64s" : "imputed_value_floats";
  std::vector<double> values;
  for (int64_t value : whole ? node.integers(name) : std::vector<int64_t>())
    values.push_back(static_cast<double>(value));
  for (float value : whole ? std::vector<float>() : node.reals(name)) values.push_back(value);
  FOLIOT_RETURN_IF_ERROR(check_per_feature(node, name, values.size()));
  const double replaced =
      whole ? static_cast<double>(node.integer("replaced_value_int64", 0)) : node.real("replaced_value_float", 0);
  const ValueIndex row = c.constant(from_doubles(c.type(x), {static_cast<int64_t>(values.size())}, values));
  if (std::isnan(replaced)) return c.finish(node, c.where(c.binary(Function::kEqual, x, x), x, row));
  return c.finish(node, c.where(c.binary(Function::kEqual, x, c.like(x, replaced)), row, x));
}

// What is in none of the categories becomes a row of zeros.
Status one_hot_encoder(NodeTranslation& node) {
  if (!node.texts("cats_strings").empty()) return Status::unimplemented(kStrings);
  const std::vector<int64_t> categories = node.integers("cats_int64s");
  if (categories.empty()) return invalid("attribute 'cats_int64s' is missing or empty");
  Composer c(node.builder());
  Shape shape = node.shape(0);
  shape.push_back(1);
  const ValueIndex x = c.reshape(c.cast(node.input(0), DataType::kInt64), std::move(shape));
  const ValueIndex row = c.integers(categories, {static_cast<int64_t>(categories.size())});
  return c.finish(node, c.cast(c.binary(Function::kEqual, x, row), DataType::kFloat32));
}

// Keys, or values, of a LabelEncoder: of integers, floats, or a tensor of either.
Result<std::optional<Constant>> label_list(NodeTranslation& node, const std::string& name) {
  const auto length = [](const auto& values) { return Shape{static_cast<int64_t>(values.size())}; };
  if (node.has_attribute(name + "_tensor")) {
    FOLIOT_ASSIGN_OR_RETURN(Constant tensor, node.tensor(name + "_tensor"));
    return std::optional(std::move(tensor));
  }
  if (const std::vector<int64_t> whole = node.integers(name + "_int64s"); !whole.empty())
    return std::optional(make_constant(length(whole), std::span(whole)));
  if (const std::vector<float> reals = node.reals(name + "_floats"); !reals.empty())
    return std::optional(make_constant(length(reals), std::span(reals)));
  return std::optional<Constant>();
}

// What a LabelEncoder gives for what is none of its keys.
Result<Constant> label_default(NodeTranslation& node, DataType type) {
  if (node.has_attribute("default_tensor")) {
    FOLIOT_ASSIGN_OR_RETURN(const Constant tensor, node.tensor("default_tensor"));
    if (tensor.type != type || element_count(tensor.shape) != 1)
      return invalid("attribute 'default_tensor' is no value");
    return Constant{type, {1}, tensor.bytes};
  }
  const double value =
      is_floating(type) ? node.real("default_float", -0.0) : static_cast<double>(node.integer("default_int64", -1));
  return from_doubles(type, {1}, std::vector{value});
}

// Each element's value, found at the position of the key that equals it. Names are served
// as their positions.
Status label_encoder(NodeTranslation& node) {
  FOLIOT_ASSIGN_OR_RETURN(const auto keys, label_list(node, "keys"));
  FOLIOT_ASSIGN_OR_RETURN(auto values, label_list(node, "values"));
  if (!keys) return Status::unimplemented(kStrings);
  if (const auto names = static_cast<int64_t>(node.texts("values_strings").size()); !values && names > 0) {
    std::vector<int64_t> positions(static_cast<size_t>(names));
    std::iota(positions.begin(), positions.end(), 0);
    values = make_constant({names}, std::span<const int64_t>(positions));
  }
  if (!values) return invalid("it has no values");
  const uint64_t count = element_count(keys->shape);
  if (count == 0 || count != element_count(values->shape)) {
    return invalid("it has {} keys and {} values", count, element_count(values->shape));
  }
  Composer c(node.builder());
  if (c.type(node.input(0)) != keys->type) {
    return invalid("its keys are {}, its input {}", to_string(keys->type), to_string(c.type(node.input(0))));
  }
  Shape wide = node.shape(0);
  wide.push_back(1);
  const ValueIndex x = c.reshape(node.input(0), wide);
  const ValueIndex key_row = c.constant({keys->type, {static_cast<int64_t>(count)}, keys->bytes});
  ValueIndex same = c.binary(Function::kEqual, x, key_row);
  if (is_floating(keys->type)) {  // NaN is a key like others
    const ValueIndex is_number = c.binary(Function::kEqual, x, x);
    const ValueIndex key_is_number = c.binary(Function::kEqual, key_row, key_row);
    same = c.binary(Function::kOr, same, c.unary(Function::kNot, c.binary(Function::kOr, is_number, key_is_number)));
  }
  const ValueIndex marks = c.cast(same, DataType::kFloat32);
  // A last column that is the largest where no key is.
  const ValueIndex none = c.expand(c.scalar(DataType::kFloat32, 0.5), wide);
  const auto axis = static_cast<int64_t>(wide.size()) - 1;
  const ValueIndex position = c.arg_max(c.concat({marks, none}, axis), axis, false);
  FOLIOT_ASSIGN_OR_RETURN(Constant otherwise, label_default(node, values->type));
  const ValueIndex table = c.concat(
      {c.constant({values->type, {static_cast<int64_t>(count)}, values->bytes}), c.constant(std::move(otherwise))}, 0);
  return c.finish(node, c.gather(table, position, 0));
}

// The features at some positions of the last dimension; a vector becomes one row.
Status array_feature_extractor(NodeTranslation& node) {
  Composer c(node.builder());
  ValueIndex x = node.input(0);
  if (c.rank(x) == 1) x = c.reshape(x, {1, c.shape(x)[0]});
  const auto count = static_cast<int64_t>(element_count(node.shape(1)));
  const ValueIndex positions = c.reshape(node.input(1), {count});
  return c.finish(node, c.gather(x, positions, c.rank(x) - 1));
}

Status feature_vectorizer(NodeTranslation& node) {
  Composer c(node.builder());
  const std::vector<int64_t> widths = node.integers("inputdimensions");
  if (!widths.empty() && widths.size() != node.input_count()) {
    return invalid("attribute 'inputdimensions' has {} values for {} inputs", widths.size(), node.input_count());
  }
  std::vector<ValueIndex> parts;
  for (size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) return invalid("input {} is missing", i);
    ValueIndex part = c.cast(node.input(i), DataType::kFloat32);
    if (c.rank(part) == 1) part = c.reshape(part, {c.shape(part)[0], 1});
    if (!widths.empty() && c.rank(part) == 2 && c.shape(part)[1] != widths[i]) {
      return invalid("input {} has {} features, attribute 'inputdimensions' says {}", i, c.shape(part)[1], widths[i]);
    }
    parts.push_back(part);
  }
  return c.finish(node, c.concat(std::move(parts), 1));
}

constexpr OnnxOperator kFeatureOperators[] = {
    {"Scaler", 1, 1, scaler},
    {"Normalizer", 1, 1, normalizer},
    {"Binarizer", 1, 1, binarizer},
    {"Imputer", 1, 1, imputer},
    {"OneHotEncoder", 1, 1, one_hot_encoder},
    {"LabelEncoder", 1, 1, label_encoder},
    {"ArrayFeatureExtractor", 2, 2, array_feature_extractor},
    {"FeatureVectorizer", 1, kAnyNumber, feature_vectorizer},
};

}  // namespace

std::span<const OnnxOperator> feature_operators() { return kFeatureOperators; }

}  // namespace foliot
