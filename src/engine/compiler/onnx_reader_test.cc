// The reader, and serialize() of test_model.h, which is written against it.
#include "engine/compiler/onnx_reader.h"

#include <gtest/gtest.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop
#include <google/protobuf/unknown_field_set.h>

#include <fstream>

#include "engine/compiler/test_model.h"
#include "foundation/base/check.h"

namespace foliot {
namespace {

int onnx_type(DataType type) {
  switch (type) {
    case DataType::kFloat32: return onnx::TensorProto::FLOAT;
    case DataType::kInt64: return onnx::TensorProto::INT64;
    case DataType::kInt32: return onnx::TensorProto::INT32;
    case DataType::kBool: return onnx::TensorProto::BOOL;
    case DataType::kInt8: return onnx::TensorProto::INT8;
    case DataType::kUint8: return onnx::TensorProto::UINT8;
    default: FOLIOT_CHECK(false);
  }
}

void write(const std::string& name, const Constant& constant, onnx::TensorProto* tensor) {
  tensor->set_name(name);
  tensor->set_data_type(onnx_type(constant.type));
  for (int64_t extent : constant.shape) tensor->add_dims(extent);
  tensor->set_raw_data(constant.bytes->data(), constant.bytes->size());
}

void write(const OnnxValueInfo& value, onnx::ValueInfoProto* info) {
  info->set_name(value.name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx_type(value.type));
  if (!value.dimensions) return;
  tensor->mutable_shape();
  for (const OnnxDimension& dimension : *value.dimensions) {
    auto* added = tensor->mutable_shape()->add_dim();
    if (dimension.value != -1) {
      added->set_dim_value(dimension.value);
    } else {
      added->set_dim_param(dimension.symbol);
    }
  }
}

struct AttributeWriter {
  onnx::AttributeProto* to;
  void operator()(int64_t value) const { to->set_type(onnx::AttributeProto::INT), to->set_i(value); }
  void operator()(float value) const { to->set_type(onnx::AttributeProto::FLOAT), to->set_f(value); }
  void operator()(const std::string& value) const { to->set_type(onnx::AttributeProto::STRING), to->set_s(value); }
  void operator()(const std::vector<int64_t>& values) const {
    to->set_type(onnx::AttributeProto::INTS);
    for (int64_t value : values) to->add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    to->set_type(onnx::AttributeProto::FLOATS);
    for (float value : values) to->add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    to->set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) to->add_strings(value);
  }
  void operator()(const Constant& constant) const {
    to->set_type(onnx::AttributeProto::TENSOR);
    write("", constant, to->mutable_t());
  }
  void operator()(const std::shared_ptr<const OnnxGraph>& graph) const;
  void operator()(const OnnxAttributeReference& reference) const { to->set_ref_attr_name(reference.name); }
  void operator()(const OnnxUnsupportedAttribute&) const { to->set_type(onnx::AttributeProto::TENSORS); }
};

void write(const OnnxNode& node, onnx::NodeProto* added) {
  added->set_name(node.name);
  added->set_op_type(node.type);
  added->set_domain(node.domain);
  for (const std::string& input : node.inputs) added->add_input(input);
  for (const std::string& output : node.outputs) added->add_output(output);
  for (const auto& [name, value] : node.attributes) {
    onnx::AttributeProto* attribute = added->add_attribute();
    attribute->set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
}

void AttributeWriter::operator()(const std::shared_ptr<const OnnxGraph>& graph) const {
  to->set_type(onnx::AttributeProto::GRAPH);
  for (const auto& [name, constant] : graph->constants) write(name, constant, to->mutable_g()->add_initializer());
  for (const std::string& input : graph->inputs) to->mutable_g()->add_input()->set_name(input);
  for (const std::string& output : graph->outputs) to->mutable_g()->add_output()->set_name(output);
  for (const OnnxNode& node : graph->nodes) write(node, to->mutable_g()->add_node());
}

void write(const OnnxFunction& function, onnx::FunctionProto* added) {
  added->add_opset_import()->set_version(function.opset);
  for (const std::string& input : function.body.inputs) added->add_input(input);
  for (const std::string& output : function.body.outputs) added->add_output(output);
  for (const OnnxNode& node : function.body.nodes) write(node, added->add_node());
  for (const auto& [name, value] : function.defaults) {
    onnx::AttributeProto attribute;
    attribute.set_name(name);
    std::visit(AttributeWriter{&attribute}, value);
    constexpr int kDefaults = 11;  // as onnx 1.13 and later have them
    added->GetReflection()->MutableUnknownFields(added)->AddLengthDelimited(kDefaults, attribute.SerializeAsString());
  }
}

}  // namespace

std::string serialize(const TestModel& test) {
  const OnnxModel& model = test.model();
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(model.opset);
  onnx::GraphProto* graph = proto.mutable_graph();
  for (const auto& [name, constant] : model.constants) write(name, constant, graph->add_initializer());
  for (const OnnxValueInfo& input : model.inputs) write(input, graph->add_input());
  for (const OnnxValueInfo& output : model.outputs) write(output, graph->add_output());
  for (const OnnxNode& node : model.nodes) write(node, graph->add_node());
  for (const auto& [name, function] : model.functions) {
    onnx::FunctionProto* added = proto.add_functions();
    added->set_domain(std::get<0>(name));
    added->set_name(std::get<1>(name));
    write(function, added);
  }
  return proto.SerializeAsString();
}

namespace {

TestModel small_model() {
  TestModel model;
  model.input("x", {open("batch"), fixed(4)}).weights("w", {4, 2}).output("y");
  model.node("Gemm", {"x", "w"}, "y", {{"alpha", 0.5f}, {"transB", int64_t{0}}});
  return model;
}

Result<OnnxModel> parse(const std::string& bytes) { return parse_onnx(std::as_bytes(std::span(bytes)), "."); }

TEST(OnnxReaderTest, ReadsWhatWasWritten) {
  const auto model = parse(serialize(small_model()));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->opset, 17);
  ASSERT_EQ(model->inputs.size(), 1u);
  EXPECT_EQ((*model->inputs[0].dimensions)[0].symbol, "batch");
  EXPECT_EQ((*model->inputs[0].dimensions)[1].value, 4);
  ASSERT_EQ(model->nodes.size(), 1u);
  EXPECT_EQ(std::get<float>(model->nodes[0].attributes.at("alpha")), 0.5f);
  EXPECT_EQ(*model->constants.at("w").bytes, *small_model().model().constants.at("w").bytes);
}

TEST(OnnxReaderTest, RefusesEveryTruncation) {
  const std::string whole = serialize(small_model());
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) refused += parse(whole.substr(0, size)).ok() ? 0 : 1;
  // Cuts between the last fields of the message leave a shorter, valid model.
  EXPECT_GT(refused, whole.size() * 9 / 10);
}

TEST(OnnxReaderTest, SurvivesDamage) {
  const std::string whole = serialize(small_model());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    const auto model = parse(damaged);
    EXPECT_EQ(model.ok(), model.status().message().empty());
  }
}

TEST(OnnxReaderTest, RefusesOldOpsets) {
  TestModel model = small_model();
  model.model().opset = 6;
  const auto parsed = parse(serialize(model));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), StatusCode::kUnimplemented);
}

TEST(OnnxReaderTest, RefusesVersionsThatAreNotKnown) {
  const auto message = [](int64_t opset, int64_t ir_version, int64_t classic) {
    onnx::ModelProto proto;
    EXPECT_TRUE(proto.ParseFromString(serialize(small_model())));
    proto.mutable_opset_import(0)->set_version(opset);
    proto.set_ir_version(ir_version);
    auto* other = proto.add_opset_import();
    other->set_domain("ai.onnx.ml");
    other->set_version(classic);
    const auto parsed = parse(proto.SerializeAsString());
    return parsed.ok() ? std::string() : parsed.status().message();
  };
  EXPECT_EQ(message(28, 14, 5), "");
  EXPECT_NE(message(29, 14, 5).find("opset 29"), std::string::npos);
  EXPECT_NE(message(28, 15, 5).find("IR version 15"), std::string::npos);
  EXPECT_NE(message(28, 14, 6).find("opset 6 of ai.onnx.ml"), std::string::npos);
}

TEST(OnnxReaderTest, NamesAnElementTypeThatIsNotSupported) {
  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(serialize(small_model())));
  proto.mutable_graph()->mutable_initializer(0)->set_data_type(14);
  EXPECT_NE(parse(proto.SerializeAsString()).status().message().find("14 is not supported (COMPLEX64)"),
            std::string::npos);
}

onnx::ModelProto with_sparse_constant(std::vector<int64_t> indices, std::vector<int64_t> shape_of_indices) {
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(serialize(small_model())));
  auto* sparse = proto.mutable_graph()->add_sparse_initializer();
  write("sparse", make_constant({2}, std::vector<float>{5, 7}), sparse->mutable_values());
  write("", make_constant(Shape(shape_of_indices.begin(), shape_of_indices.end()), indices), sparse->mutable_indices());
  for (int64_t extent : {2, 3}) sparse->add_dims(extent);
  return proto;
}

TEST(OnnxReaderTest, MakesSparseConstantsDense) {
  for (const auto& [indices, shape] : {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{1, 5}, {2}},
                                       std::pair<std::vector<int64_t>, std::vector<int64_t>>{{0, 1, 1, 2}, {2, 2}}}) {
    const auto model = parse(with_sparse_constant(indices, shape).SerializeAsString());
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(to_doubles(model->constants.at("sparse")), (std::vector<double>{0, 5, 0, 0, 0, 7}));
  }
}

TEST(OnnxReaderTest, RefusesSparseConstantsBeyondTheirShape) {
  const auto message = [](std::vector<int64_t> indices, std::vector<int64_t> shape) {
    return parse(with_sparse_constant(std::move(indices), std::move(shape)).SerializeAsString()).status().message();
  };
  EXPECT_NE(message({1, 6}, {2}).find("index 6 is not below 6"), std::string::npos);
  EXPECT_NE(message({-1, 5}, {2}).find("index -1"), std::string::npos);
  EXPECT_NE(message({0, 1, 2, 0}, {2, 2}).find("index 2 is not below 2"), std::string::npos);
  EXPECT_NE(message({1, 2, 3}, {3}).find("2 values and indices [3]"), std::string::npos);
}

TEST(OnnxReaderTest, RefusesDataOfAnotherSize) {
  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(serialize(small_model())));
  proto.mutable_graph()->mutable_initializer(0)->add_dims(3);
  const auto parsed = parse(proto.SerializeAsString());
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.status().message().find("'w'"), std::string::npos);
}

TEST(OnnxReaderTest, RefusesShapesThatOverflow) {
  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(serialize(small_model())));
  for (int i = 0; i < 4; ++i) proto.mutable_graph()->mutable_initializer(0)->add_dims(int64_t{1} << 40);
  EXPECT_FALSE(parse(proto.SerializeAsString()).ok());
}

TEST(OnnxReaderTest, RefusesExternalDataOutsideTheFolder) {
  for (const char* location : {"/etc/hostname", "../../../../etc/hostname", ".."}) {
    onnx::ModelProto proto;
    ASSERT_TRUE(proto.ParseFromString(serialize(small_model())));
    auto* tensor = proto.mutable_graph()->mutable_initializer(0);
    tensor->clear_raw_data();
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    EXPECT_FALSE(parse(proto.SerializeAsString()).ok()) << location;
  }
}

TEST(OnnxReaderTest, ListsTheFilesThatTensorsName) {
  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(serialize(small_model())));
  const std::filesystem::path folder = std::filesystem::canonical(testing::TempDir());
  std::ofstream(folder / "weights.bin") << "weights";
  const auto list = [&] {
    const std::string bytes = proto.SerializeAsString();
    return list_onnx_files(folder / "model.onnx", std::as_bytes(std::span(bytes))).value();
  };
  EXPECT_EQ(list(), std::vector{folder / "model.onnx"});
  auto* tensor = proto.mutable_graph()->mutable_initializer(0);
  tensor->clear_raw_data();
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* entry = tensor->add_external_data();
  entry->set_key("location");
  entry->set_value("weights.bin");
  EXPECT_EQ(list(), (std::vector<std::filesystem::path>{folder / "model.onnx", folder / "weights.bin"}));
}

TEST(OnnxReaderTest, AFileIsNamedAfterAModelWhoseNameItBeginsWith) {
  const std::filesystem::path folder = testing::TempDir();
  for (const char* name : {"net.onnx.data", "net.onnx_data", "net_weights.bin", "net"}) {
    EXPECT_TRUE(is_named_after(folder / name, folder / "net.onnx")) << name;
    EXPECT_TRUE(is_named_after(name, "net.onnx")) << name;
  }
  for (const char* name : {"weights.bin", "ne", "net/weights.bin", "../net.data"}) {
    EXPECT_FALSE(is_named_after(folder / name, folder / "net.onnx")) << name;
  }
}

// A classifier as skl2onnx writes it: names as labels, and probabilities as a sequence of maps.
onnx::ModelProto classifier(const std::vector<std::string>& names) {
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(serialize(small_model())));
  onnx::GraphProto* graph = proto.mutable_graph();
  onnx::NodeProto* zip_map = graph->add_node();
  zip_map->set_op_type("ZipMap");
  zip_map->set_domain("ai.onnx.ml");
  zip_map->add_input("y");
  zip_map->add_output("maps");
  onnx::AttributeProto* labels = zip_map->add_attribute();
  labels->set_name("classlabels_strings");
  labels->set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& name : names) labels->add_strings(name);
  onnx::ValueInfoProto* maps = graph->add_output();
  maps->set_name("maps");
  maps->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
  onnx::ValueInfoProto* label = graph->add_output();
  label->set_name("label");
  label->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  return proto;
}

TEST(OnnxReaderTest, ServesNamesOfClassesAsNumbers) {
  const std::vector<std::string> names{"cat", "dog"};
  const auto model = parse(classifier(names).SerializeAsString());
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->outputs.size(), 3u);
  EXPECT_TRUE(model->outputs[0].labels.empty());
  EXPECT_EQ(model->outputs[1].type, DataType::kFloat32);
  EXPECT_EQ(model->outputs[1].labels, names);
  EXPECT_EQ(model->outputs[2].type, DataType::kInt64);
  EXPECT_EQ(model->outputs[2].labels, names);
  EXPECT_EQ(model->nodes.back().type, "Identity");
  EXPECT_EQ(model->nodes.back().domain, "");
  ASSERT_EQ(model->notes.size(), 2u);
  EXPECT_NE(model->notes[0].find("'maps'"), std::string::npos) << model->notes[0];
  EXPECT_NE(model->notes[1].find("'label'"), std::string::npos) << model->notes[1];
}

TEST(OnnxReaderTest, ReadsATensorOfNamesAsTheirPositions) {
  onnx::ModelProto proto = classifier({"cat", "dog"});
  onnx::TensorProto* tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name("classes");
  tensor->set_data_type(onnx::TensorProto::STRING);
  tensor->add_dims(2);
  for (const char* name : {"cat", "dog"}) tensor->add_string_data(name);
  const auto model = parse(proto.SerializeAsString());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(to_integers(model->constants.at("classes")), (std::vector<int64_t>{0, 1}));

  tensor->set_dims(0, 3);
  EXPECT_FALSE(parse(proto.SerializeAsString()).ok());
  tensor->set_dims(0, 2);
  tensor->set_string_data(1, "cow");
  const auto other = parse(proto.SerializeAsString());
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("two lists of names"), std::string::npos) << other.status().message();
}

TEST(OnnxReaderTest, LimitsNamesOfClasses) {
  for (const auto& names : {std::vector<std::string>(kLabelsMax + 1, "x"),
                            std::vector<std::string>(1, std::string(kLabelBytesMax + 1, 'x'))}) {
    const auto model = parse(classifier(names).SerializeAsString());
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace foliot
