#include "models/steps/step_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "engine/device/plan_check.h"
#include "engine/device/word_piece.h"
#include "models/steps/onnx_writer.h"
#include "models/steps/step_options.h"
#include "models/steps/word_piece_builder.h"

namespace foliot {
namespace {

constexpr double kValueMax = 1e9;  // of numbers that tensors are computed with

// The names that the three options of decode's `fit` and the like have.
constexpr std::array<std::string_view, 3> kFits{"stretch", "crop", "pad"};
constexpr std::array<std::string_view, 2> kModes{"linear", "nearest"};
constexpr std::array<std::string_view, 2> kOrders{"chw", "hwc"};
constexpr std::array<std::string_view, 2> kTypes{"float32", "uint8"};
constexpr std::array<std::string_view, 2> kCases{"lower", "keep"};

// The option bytes: the buckets of an input of bytes, ascending.
std::vector<int64_t> read_buckets(StepOptions& options, int64_t least, std::vector<int64_t> otherwise) {
  constexpr int64_t kBytesMax = int64_t{64} << 20;
  constexpr size_t kBucketsMax = 16;
  std::vector<int64_t> bytes = options.integers("bytes", kBucketsMax, least, kBytesMax);
  if (bytes.empty()) return otherwise;
  if (std::ranges::adjacent_find(bytes, std::greater_equal()) != bytes.end()) {
    options.fail(fmt::format("bytes [{}]: must ascend", fmt::join(bytes, ", ")));
  }
  return bytes;
}

// bytes -> image[height, width, 3] (uint8)
StepModel make_decode(StepOptions& options, const std::optional<StepTensor>& /*source*/) {
  const int64_t width = options.integer("width", 1, kImageExtentMax);
  const int64_t height = options.integer("height", 1, kImageExtentMax);
  const OnnxWriter::Attributes attributes{
      {"width", width},
      {"height", height},
      {"fit", options.choice("fit", kFits)},
      {"pad_value", options.integer("pad_value", 0, 255, 0)},
      {"pixels_max", options.integer("pixels_max", 1, kImagePixelsMax, int64_t{1} << 24)}};
  const std::vector<int64_t> bytes =
      read_buckets(options, 1024, {int64_t{32} << 10, int64_t{128} << 10, int64_t{512} << 10, int64_t{2} << 20});
  OnnxWriter writer;
  writer.input("bytes", DataType::kUint8, {-1}, "bytes");
  writer.node("foliot.DecodeJpeg", {"bytes"}, {"image"}, attributes);
  const StepTensor image{"image", DataType::kUint8, {height, width, 3}};
  writer.output(image.name, image.type, image.shape);
  return {.onnx = writer.content(), .buckets = {{"bytes", bytes}}, .outputs = {image}};
}

// The input: as the source is, or as the options say. `rank`: 0 for any.
StepTensor read_input(StepOptions& options, const std::optional<StepTensor>& source, const std::string& name,
                      size_t rank) {
  constexpr size_t kRankMax = 6;
  constexpr int64_t kExtentMax = int64_t{1} << 24;
  StepTensor input{name, DataType::kFloat32, options.integers("shape", kRankMax, 1, kExtentMax)};
  if (options.choice("type", kTypes) == "uint8") input.type = DataType::kUint8;
  if (input.shape.empty() && source) {
    if (options.has("type")) options.fail("type goes with shape, and its input comes from another step");
    input.type = source->type;
    input.shape = source->shape;
  } else if (input.shape.empty()) {
    options.fail(fmt::format("shape is missing: write that of one row of '{}', such as {}", name,
                             rank == 3 ? "[224, 224, 3]" : "[1000]"));
    input.shape = Shape(rank == 0 ? 1 : rank, 1);
  }
  if (rank != 0 && input.shape.size() != rank) {
    options.fail(
        fmt::format("its input '{}' has {} dimensions; it takes [height, width, channels]", name, input.shape.size()));
    input.shape = Shape(rank, 1);
  }
  if (input.type != DataType::kFloat32 && input.type != DataType::kUint8) {
    options.fail(fmt::format("its input '{}' is {}; it takes float32 and uint8", name, to_string(input.type)));
  }
  return input;
}

std::string to_float(OnnxWriter& writer, const std::string& x) {
  constexpr int64_t kFloat = 1;  // onnx::TensorProto::FLOAT
  return writer.value("Cast", {x}, {{"to", kFloat}});
}

// image[h, w, c] -> resized[height, width, c], of the same type.
StepModel make_resize(StepOptions& options, const std::optional<StepTensor>& source) {
  const StepTensor image = read_input(options, source, "image", 3);
  const int64_t width = options.integer("width", 1, kImageExtentMax);
  const int64_t height = options.integer("height", 1, kImageExtentMax);
  const std::string mode = options.choice("mode", kModes);
  const int64_t channels = image.shape[2];
  const StepTensor resized{"resized", image.type, {height, width, channels}};
  OnnxWriter writer;
  writer.input(image.name, image.type, image.shape);
  const bool whole = image.type == DataType::kUint8;
  const std::string x = whole ? to_float(writer, image.name) : image.name;
  const std::string planes = writer.value("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  OnnxWriter::Attributes attributes{{"mode", mode},
                                    {"axes", std::vector<int64_t>{2, 3}},
                                    {"coordinate_transformation_mode", std::string("half_pixel")}};
  if (mode == "linear") attributes["antialias"] = int64_t{1};
  const std::string made = writer.value("Resize", {planes, "", "", writer.integers({height, width})}, attributes);
  const OnnxWriter::Attributes back{{"perm", std::vector<int64_t>{0, 2, 3, 1}}};
  if (whole) {
    constexpr int64_t kUint8 = 2;  // onnx::TensorProto::UINT8
    const std::string levels = writer.value("Round", {writer.value("Transpose", {made}, back)});
    writer.node("Cast", {levels}, {resized.name}, {{"to", kUint8}});
  } else {
    writer.node("Transpose", {made}, {resized.name}, back);
  }
  writer.output(resized.name, resized.type, resized.shape);
  return {.onnx = writer.content(), .buckets = {}, .outputs = {resized}};
}

// image[h, w, c] -> cropped[height, width, c], from (x, y) on, or the middle.
StepModel make_crop(StepOptions& options, const std::optional<StepTensor>& source) {
  const StepTensor image = read_input(options, source, "image", 3);
  const int64_t width = options.integer("width", 1, image.shape[1]);
  const int64_t height = options.integer("height", 1, image.shape[0]);
  const int64_t x = options.integer("x", 0, image.shape[1] - width, (image.shape[1] - width) / 2);
  const int64_t y = options.integer("y", 0, image.shape[0] - height, (image.shape[0] - height) / 2);
  const StepTensor cropped{"cropped", image.type, {height, width, image.shape[2]}};
  OnnxWriter writer;
  writer.input(image.name, image.type, image.shape);
  writer.node("Slice",
              {image.name, writer.integers({y, x}), writer.integers({y + height, x + width}), writer.integers({1, 2})},
              {cropped.name});
  writer.output(cropped.name, cropped.type, cropped.shape);
  return {.onnx = writer.content(), .buckets = {}, .outputs = {cropped}};
}

// image[h, w, c] -> tensor[c, h, w] or [h, w, c] (float32): (x * scale - mean) / std.
StepModel make_normalise(StepOptions& options, const std::optional<StepTensor>& source) {
  const StepTensor image = read_input(options, source, "image", 3);
  const auto channels = static_cast<size_t>(image.shape[2]);
  constexpr double kLeast = 1e-9;
  const double scale = options.real("scale", -kValueMax, kValueMax, image.type == DataType::kUint8 ? 1.0 / 255 : 1);
  const std::vector<double> mean =
      options.reals("mean", channels, -kValueMax, kValueMax, std::vector<double>(channels, 0));
  const std::vector<double> deviation =
      options.reals("std", channels, kLeast, kValueMax, std::vector<double>(channels, 1));
  const bool planes = options.choice("order", kOrders) == "chw";
  const StepTensor tensor{"tensor", DataType::kFloat32,
                          planes ? Shape{image.shape[2], image.shape[0], image.shape[1]} : image.shape};
  std::vector<double> factor, summand;
  for (size_t i = 0; i < channels; ++i) {
    factor.push_back(scale / deviation[i]);
    summand.push_back(-mean[i] / deviation[i]);
  }
  OnnxWriter writer;
  writer.input(image.name, image.type, image.shape);
  const std::string x = image.type == DataType::kUint8 ? to_float(writer, image.name) : image.name;
  const std::string product = writer.value("Mul", {x, writer.reals(factor)});
  const std::vector<std::string> operands{product, writer.reals(summand)};
  if (planes) {
    writer.node("Transpose", {writer.value("Add", operands)}, {tensor.name},
                {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  } else {
    writer.node("Add", operands, {tensor.name});
  }
  writer.output(tensor.name, tensor.type, tensor.shape);
  return {.onnx = writer.content(), .buckets = {}, .outputs = {tensor}};
}

// values -> above (bool): whether each is greater than the limit.
StepModel make_threshold(StepOptions& options, const std::optional<StepTensor>& source) {
  const StepTensor values = read_input(options, source, "values", 0);
  const double limit = options.real("limit", -kValueMax, kValueMax);
  const StepTensor above{"above", DataType::kBool, values.shape};
  OnnxWriter writer;
  writer.input(values.name, values.type, values.shape);
  const std::string x = values.type == DataType::kUint8 ? to_float(writer, values.name) : values.name;
  writer.node("Greater", {x, writer.reals({limit})}, {above.name});
  writer.output(above.name, above.type, above.shape);
  return {.onnx = writer.content(), .buckets = {}, .outputs = {above}};
}

// values[.., n] -> values of the k largest, and indices (int64) of where they are; of equals the first.
StepModel make_top_k(StepOptions& options, const std::optional<StepTensor>& source) {
  const StepTensor scores = read_input(options, source, "scores", 0);
  StepTensor values{"values", DataType::kFloat32, scores.shape};
  values.shape.back() = options.integer("k", 1, scores.shape.back());
  const StepTensor indices{"indices", DataType::kInt64, values.shape};
  OnnxWriter writer;
  writer.input(scores.name, scores.type, scores.shape);
  const std::string x = scores.type == DataType::kUint8 ? to_float(writer, scores.name) : scores.name;
  writer.node("TopK", {x, writer.integers({values.shape.back()})}, {values.name, indices.name});
  for (const StepTensor& made : {values, indices}) writer.output(made.name, made.type, made.shape);
  return {.onnx = writer.content(), .buckets = {}, .outputs = {values, indices}};
}

// text -> ids[length] (int64) of its words by a vocabulary, mask[length]: 1 where they are, types[length]: 0.
StepModel make_tokenise(StepOptions& options, const std::optional<StepTensor>& /*source*/) {
  constexpr int64_t kLength = 128, kInt64 = 7;  // onnx::TensorProto::INT64
  const int64_t length = options.integer("length", WordPieceTable::kLengthMin, WordPieceTable::kLengthMax, kLength);
  const bool lower = options.choice("case", kCases) == "lower";
  const std::vector<int64_t> bytes = read_buckets(options, 16, {256, 1024, 4096});
  const std::string vocabulary = options.file("vocabulary", "vocab.txt", kVocabularyBytesMax);
  std::vector<int32_t> table;
  if (options.status().ok()) {
    Result<std::vector<int32_t>> built = build_word_piece_table(vocabulary, lower);
    if (built.ok())
      table = *std::move(built);
    else
      options.fail(fmt::format("vocabulary: {}", built.status().message()));
  }
  const StepTensor ids{"ids", DataType::kInt64, {length}}, mask{"mask", DataType::kInt64, {length}},
      types{"types", DataType::kInt64, {length}};
  OnnxWriter writer;
  writer.input("text", DataType::kUint8, {-1}, "bytes");
  writer.node("foliot.WordPiece", {"text", writer.words(table)}, {ids.name}, {{"length", length}});
  const int64_t padding = table.empty() ? 0 : table[WordPieceTable::kPadding];
  const std::string padded = writer.value("Equal", {ids.name, writer.integers({padding})});
  writer.node("Cast", {writer.value("Not", {padded})}, {mask.name}, {{"to", kInt64}});
  writer.node("Mul", {ids.name, writer.integers({0})}, {types.name});
  for (const StepTensor& made : {ids, mask, types}) writer.output(made.name, made.type, made.shape);
  return {.onnx = writer.content(), .buckets = {{"bytes", bytes}}, .outputs = {ids, mask, types}};
}

struct Kind {
  std::string_view name;
  StepModel (*make)(StepOptions& options, const std::optional<StepTensor>& source);
};

constexpr std::array kKinds{Kind{"crop", make_crop},           Kind{"decode", make_decode},
                            Kind{"normalise", make_normalise}, Kind{"resize", make_resize},
                            Kind{"threshold", make_threshold}, Kind{"tokenise", make_tokenise},
                            Kind{"top_k", make_top_k}};

}  // namespace

Result<StepModel> make_step_model(const std::string& kind, const std::map<std::string, StepOption>& options,
                                  const std::optional<StepTensor>& source, const std::filesystem::path& folder) {
  std::vector<std::string_view> names;
  for (const Kind& known : kKinds) {
    names.push_back(known.name);
    if (known.name != kind) continue;
    StepOptions reader(known.name, options, folder);
    StepModel model = known.make(reader, source);
    FOLIOT_RETURN_IF_ERROR(reader.status());
    return model;
  }
  return Status::invalid_argument(fmt::format("there is no step '{}'; the steps are {}", kind, fmt::join(names, ", ")));
}

}  // namespace foliot
