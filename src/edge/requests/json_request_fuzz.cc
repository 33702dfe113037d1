// libFuzzer target: anything that a client can post to .../infer, .../NAME:predict or /invocations. The first two bytes
// of the input choose where the JSON ends.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "answer/model_calls/inference_call.h"
#include "edge/requests/json_request.h"

namespace {

std::shared_ptr<const foliot::ModelInfo> model() {
  auto info = std::make_shared<foliot::ModelInfo>();
  info->name = "model";
  info->only().batch_sizes = {1, 2, 4};
  info->inputs = {{"x", foliot::DataType::kFloat32, {2}, {""}},
                  {"tokens", foliot::DataType::kInt64, {-1}, {"sequence"}}};
  info->outputs = {{"y", foliot::DataType::kFloat32, {-1, 2}, {"sequence", ""}}};
  info->buckets = {{{{"sequence", 4}}}, {{{"sequence", 16}}}};
  return info;
}

// Of one input of strings.
std::shared_ptr<const foliot::ModelInfo> text_model() {
  auto info = std::make_shared<foliot::ModelInfo>(*model());
  info->inputs = {{.name = "text",
                   .type = foliot::DataType::kBytes,
                   .shape = {-1},
                   .dimension_names = {""},
                   .bound = foliot::RowBound{{4}, 20}}};
  return info;
}

void make_call(const std::shared_ptr<const foliot::ModelInfo>& info, const foliot::Query& query) {
  const auto call = foliot::InferenceCall::make(info, query);
  if (!call.ok()) return;
  for (uint32_t row = 0; row < call.value()->rows(); ++row)
    for (uint32_t i = 0; i < info->inputs.size(); ++i) call.value()->input(row, i);
}

void make_table_call(const std::shared_ptr<const foliot::ModelInfo>& info, std::string body) {
  foliot::JsonRequestDecoder decoder;
  const auto request = decoder.decode_table(body, foliot::TableForm::kInvocations, info);
  if (request.ok()) make_call(info, request->query);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const foliot::ModelInfo> numbers = model();
  static const std::shared_ptr<const foliot::ModelInfo> texts = text_model();
  if (size < 2) return 0;
  const size_t chosen = data[0] | (size_t{data[1]} << 8);
  std::string body(reinterpret_cast<const char*>(data) + 2, size - 2);
  make_table_call(numbers, body);
  make_table_call(texts, body);
  foliot::JsonRequestDecoder decoder;
  const auto json_bytes = foliot::parse_json_bytes(chosen == 0 ? "" : std::to_string(chosen), body.size());
  if (!json_bytes.ok()) return 0;
  const auto request = decoder.decode(body, *json_bytes);
  if (!request.ok()) return 0;
  make_call(numbers, request->query);
  make_call(texts, request->query);
  return 0;
}
