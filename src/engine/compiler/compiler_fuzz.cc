// Whatever the bytes are, reading and translating them gives graphs or an error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/compiler/dimensions.h"
#include "engine/compiler/onnx_reader.h"
#include "engine/compiler/passes.h"
#include "engine/compiler/translate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A folder that is not there: external data is never read.
  const auto model = foliot::parse_onnx(std::as_bytes(std::span(data, size)), "/nonexistent");
  if (!model.ok()) return 0;
  const auto dimensions = foliot::resolve_dimensions(*model, {});
  if (!dimensions.ok()) return 0;
  foliot::ConstantPool pool;
  for (int64_t batch_size : {1, 3}) {
    const foliot::Rebatch rebatch{.from = dimensions->own_batch_size, .to = batch_size};
    auto graph =
        foliot::translate(*model, dimensions->input_shapes(batch_size, dimensions->buckets.front()), rebatch, pool);
    if (graph.ok()) foliot::optimize(*graph, pool);
  }
  return 0;
}
