// OnnxWriter: builds a small ONNX model, node by node, and gives its file's content.
#ifndef FOLIOT_MODELS_STEPS_ONNX_WRITER_H_
#define FOLIOT_MODELS_STEPS_ONNX_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "foundation/core/tensor.h"

namespace foliot {

class OnnxWriter {
 public:
  using Attribute = std::variant<int64_t, std::string, std::vector<int64_t>>;
  using Attributes = std::map<std::string, Attribute>;

  OnnxWriter();
  ~OnnxWriter();
  OnnxWriter(const OnnxWriter&) = delete;
  OnnxWriter& operator=(const OnnxWriter&) = delete;

  // Rows of this shape behind a dimension "batch". An extent of -1 is named `open`.
  void input(const std::string& name, DataType type, const Shape& row, const std::string& open = {});
  void output(const std::string& name, DataType type, const Shape& row);
  // These return the name of the value that they make.
  std::string integers(const std::vector<int64_t>& values);
  std::string words(const std::vector<int32_t>& values);  // int32
  std::string reals(const std::vector<double>& values);   // float32
  std::string weights(const std::vector<float>& values, const Shape& shape);
  std::string value(const std::string& type, const std::vector<std::string>& inputs, const Attributes& attributes = {});
  // A node with these outputs. Of ONNX's own domain or of foliot's ("foliot.DecodeJpeg"), as value().
  void node(const std::string& type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
            const Attributes& attributes = {});

  std::string content() const;

 private:
  struct Model;
  std::string fresh_name();

  std::unique_ptr<Model> model_;
  int names_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_MODELS_STEPS_ONNX_WRITER_H_
