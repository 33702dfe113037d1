// Personal models over HTTP: POST /v2/personal/NAME/predict, topk, observe and forget, with the JSON of
// personal_request.h. Answers:
//
//   predict  {"model_name": "movies", "model_version": "3", "predictions": [4.1, 2.5]}
//   topk     {..., "results": [{"query": 512, "items": [{"item": 9, "score": 4.2}, {"item": 5, "score": 1,
//             "drawn": true, "probability": 0.0001}]}]}, a result for each user
//   observe, forget  {...}
//
// Threading: the HTTP server's I/O thread.
#ifndef FOLIOT_EDGE_HTTP_HTTP_PERSONAL_H_
#define FOLIOT_EDGE_HTTP_HTTP_PERSONAL_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/inference/mailbox.h"
#include "edge/http/http_server.h"
#include "edge/requests/personal_request.h"
#include "edge/requests/protocol_parts.h"
#include "foundation/access/scope.h"

namespace foliot {

// Parts between slashes.
bool is_personal_path(const std::vector<std::string>& path);
// REQUIRES: is_personal_path().
Scope scope_of_personal_path(const std::vector<std::string>& path);
// nullopt: there is no such path.
std::optional<PersonalMethod> personal_method_of(const std::vector<std::string>& path);
// False: there is no such path. REQUIRES: is_personal_path().
bool serve_personal_path(HttpExchange& exchange, const std::vector<std::string>& path, const ProtocolParts& parts,
                         const std::shared_ptr<Mailbox>& mailbox);

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_PERSONAL_H_
