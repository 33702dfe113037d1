#include "models/steps/onnx_writer.h"

#include <onnx/onnx_pb.h>

#include "foundation/base/check.h"

namespace foliot {
namespace {

int onnx_type(DataType type) {
  switch (type) {
    case DataType::kUint8: return onnx::TensorProto::UINT8;
    case DataType::kBool: return onnx::TensorProto::BOOL;
    case DataType::kInt64: return onnx::TensorProto::INT64;
    default: FOLIOT_CHECK(type == DataType::kFloat32); return onnx::TensorProto::FLOAT;
  }
}

void describe(onnx::ValueInfoProto& info, const std::string& name, DataType type, const Shape& row,
              const std::string& open) {
  info.set_name(name);
  onnx::TypeProto_Tensor* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx_type(type));
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  for (const int64_t extent : row) {
    onnx::TensorShapeProto_Dimension* dimension = tensor->mutable_shape()->add_dim();
    extent < 0 ? dimension->set_dim_param(open) : dimension->set_dim_value(extent);
  }
}

}  // namespace

struct OnnxWriter::Model {
  onnx::ModelProto proto;
};

OnnxWriter::OnnxWriter() : model_(std::make_unique<Model>()) {
  constexpr int kIrVersion = 8, kOpset = 18;
  model_->proto.set_ir_version(kIrVersion);
  model_->proto.add_opset_import()->set_version(kOpset);
  onnx::OperatorSetIdProto* own = model_->proto.add_opset_import();
  own->set_domain("foliot");
  own->set_version(1);
  model_->proto.mutable_graph()->set_name("step");
}

OnnxWriter::~OnnxWriter() = default;

std::string OnnxWriter::fresh_name() { return "value_" + std::to_string(names_++); }

void OnnxWriter::input(const std::string& name, DataType type, const Shape& row, const std::string& open) {
  describe(*model_->proto.mutable_graph()->add_input(), name, type, row, open);
}

void OnnxWriter::output(const std::string& name, DataType type, const Shape& row) {
  describe(*model_->proto.mutable_graph()->add_output(), name, type, row, {});
}

std::string OnnxWriter::integers(const std::vector<int64_t>& values) {
  onnx::TensorProto* tensor = model_->proto.mutable_graph()->add_initializer();
  tensor->set_name(fresh_name());
  tensor->set_data_type(onnx::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor->add_int64_data(value);
  return tensor->name();
}

std::string OnnxWriter::words(const std::vector<int32_t>& values) {
  onnx::TensorProto* tensor = model_->proto.mutable_graph()->add_initializer();
  tensor->set_name(fresh_name());
  tensor->set_data_type(onnx::TensorProto::INT32);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  tensor->mutable_raw_data()->assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t));
  return tensor->name();
}

std::string OnnxWriter::reals(const std::vector<double>& values) {
  onnx::TensorProto* tensor = model_->proto.mutable_graph()->add_initializer();
  tensor->set_name(fresh_name());
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (const double value : values) tensor->add_float_data(static_cast<float>(value));
  return tensor->name();
}

std::string OnnxWriter::weights(const std::vector<float>& values, const Shape& shape) {
  onnx::TensorProto* tensor = model_->proto.mutable_graph()->add_initializer();
  tensor->set_name(fresh_name());
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : shape) tensor->add_dims(extent);
  tensor->mutable_raw_data()->assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return tensor->name();
}

void OnnxWriter::node(const std::string& type, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const Attributes& attributes) {
  onnx::NodeProto* node = model_->proto.mutable_graph()->add_node();
  const size_t dot = type.find('.');
  node->set_op_type(dot == std::string::npos ? type : type.substr(dot + 1));
  if (dot != std::string::npos) node->set_domain(type.substr(0, dot));
  node->set_name(node->op_type());
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    if (const auto* whole = std::get_if<int64_t>(&value)) {
      attribute->set_type(onnx::AttributeProto::INT);
      attribute->set_i(*whole);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      attribute->set_type(onnx::AttributeProto::STRING);
      attribute->set_s(*text);
    } else {
      attribute->set_type(onnx::AttributeProto::INTS);
      for (const int64_t item : std::get<std::vector<int64_t>>(value)) attribute->add_ints(item);
    }
  }
}

std::string OnnxWriter::value(const std::string& type, const std::vector<std::string>& inputs,
                              const Attributes& attributes) {
  const std::string result = fresh_name();
  node(type, inputs, {result}, attributes);
  return result;
}

std::string OnnxWriter::content() const { return model_->proto.SerializeAsString(); }

}  // namespace foliot
