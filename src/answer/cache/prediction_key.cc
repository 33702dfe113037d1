#include "answer/cache/prediction_key.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace foliot {
namespace {

// Lengths before what is variable, so that no two queries are the same stream of bytes.
void add(StreamHash& hash, uint64_t number) { hash.update(std::as_bytes(std::span(&number, 1))); }
void add(StreamHash& hash, std::string_view text) {
  add(hash, text.size());
  hash.update(std::as_bytes(std::span(text)));
}

}  // namespace

PredictionKey prediction_key(const HashSecret& secret, const ModelInfo& model, const Query& query) {
  StreamHash hash(secret);
  add(hash, model.content);
  std::vector<const TensorView*> inputs;
  inputs.reserve(query.inputs.size());
  for (const TensorView& input : query.inputs) inputs.push_back(&input);
  std::ranges::sort(inputs, {}, [](const TensorView* input) { return input->name; });
  add(hash, inputs.size());
  for (const TensorView* input : inputs) {
    add(hash, input->name);
    add(hash, input->datatype);
    add(hash, input->shape.size());
    hash.update(std::as_bytes(std::span(input->shape)));
    add(hash, input->bytes.size());
    hash.update(input->bytes);
  }
  add(hash, query.outputs.size());
  for (const std::string_view output : query.outputs) add(hash, output);
  return hash.digest();
}

}  // namespace foliot
