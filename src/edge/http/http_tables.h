// Tables over HTTP (edge/requests/json_table.h), and what their clients ask besides:
//
//   KServe's protocol v1   GET /v1/models, GET /v1/models/NAME, POST /v1/models/NAME:predict, GET /
//   MLflow's server        POST /invocations, GET /ping, /health and /version
//
// /invocations names no model: it is that of a server with only one.
//
// Threading: any thread, but serve_table_path(): the HTTP server's I/O thread.
#ifndef FOLIOT_EDGE_HTTP_HTTP_TABLES_H_
#define FOLIOT_EDGE_HTTP_HTTP_TABLES_H_

#include <optional>
#include <string>
#include <vector>

#include "answer/inference/served_names.h"
#include "edge/http/http_server.h"
#include "edge/requests/json_request.h"

namespace foliot {

struct TableCall {
  TableForm form;
  std::string model;  // empty: the only one
};
// nullopt: the path is none to predict for a table. Parts between slashes.
std::optional<TableCall> table_call_of(const std::vector<std::string>& path);
// True of a path that asks only if the server is there, which needs no key.
bool is_table_health(const std::vector<std::string>& path);

// The name of the model that is called. Errors: kInvalidArgument if it has none, and the server several models;
// kNotFound if it has none.
Result<std::string> model_of(const TableCall& call, const ServedNames& names);
// Errors: as JsonRequestDecoder::decode_table(), model_of() and ServedNames::find().
Result<JsonRequest> read_table(JsonRequestDecoder& decoder, HttpExchange& exchange, const TableCall& call,
                               const ServedNames& names);
// An answer to a content type that is not read.
std::optional<HttpResponse> refuse_content_type(const HttpExchange& exchange, const TableCall& call);

// Paths beside those to predict. False: there is no such path.
bool serve_table_path(HttpExchange& exchange, const std::vector<std::string>& path, const ServedNames& names);

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_TABLES_H_
