// JsonRequest: an inference request over HTTP, decoded: JSON, with the bytes of
// some tensors after it (the protocol's binary extension); or a table in the forms of other protocols.
#ifndef FOLIOT_EDGE_REQUESTS_JSON_REQUEST_H_
#define FOLIOT_EDGE_REQUESTS_JSON_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/query.h"
#include "edge/requests/content_type.h"
#include "edge/requests/request_parameters.h"
#include "foundation/base/status.h"
#include "foundation/core/model_info.h"

namespace foliot {

// How many bytes of the body are JSON.
inline constexpr std::string_view kJsonBytesHeader = "Inference-Header-Content-Length";

struct JsonRequest {
  // Arrival is the caller's to set. Views show the decoder's memory and the
  // body; input bytes show the body or `converted`.
  Query query;
  RequestParameters parameters;
  std::vector<bool> output_is_binary;     // of query.outputs, in their order
  std::vector<ContentType> output_types;  // likewise
  bool has_nulls = false;                 // NaN among the inputs is JSON's null; only containers take it
  bool binary_by_default = false;         // of the outputs, when none is named
  std::vector<std::string> converted;     // what was numbers in the JSON
  // The model for which a table was read, and whose inputs its columns name; null for other requests.
  std::shared_ptr<const ModelInfo> model;
};

// The protocols with tables (json_table.h): KServe's protocol v1 ("instances" or "inputs"), and MLflow's /invocations
// (those, "dataframe_split" or "dataframe_records").
enum class TableForm : uint8_t { kV1, kInvocations };

// Threading: used by one thread.
class JsonRequestDecoder {
 public:
  JsonRequestDecoder();
  ~JsonRequestDecoder();

  // `json_bytes`: the value of Inference-Header-Content-Length, if it was sent;
  // otherwise the whole body is JSON. The body may get more capacity. Names and
  // the id in the result are valid until the next decode(). Errors:
  // kInvalidArgument saying where; kUnimplemented for what Foliot does not have
  // (shared memory, classification).
  Result<JsonRequest> decode(std::string& body, std::optional<size_t> json_bytes);
  // decode_table() reads a table in the same way; its "parameters" are those of a request of v2.
  Result<JsonRequest> decode_table(std::string& body, TableForm form, std::shared_ptr<const ModelInfo> model);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// Errors: kInvalidArgument if it is not a number of bytes within the body.
Result<std::optional<size_t>> parse_json_bytes(std::string_view header, size_t body_bytes);

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_JSON_REQUEST_H_
