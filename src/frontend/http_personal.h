// Personal models over HTTP: POST /v2/personal/NAME/predict, topk, observe and forget, with the JSON of
// personal_request.h. Answers:
//
//   predict  {"model_name": "movies", "model_version": "3", "predictions": [4.1, 2.5]}
//   topk     {..., "results": [{"query": 512, "items": [{"item": 9, "score": 4.2}, {"item": 5, "score": 1,
//             "drawn": true, "probability": 0.0001}]}]}, a result for each user
//   observe, forget  {...}
//
// Threading: the HTTP server's I/O thread.
#ifndef FOLIOT_FRONTEND_HTTP_PERSONAL_H_
#define FOLIOT_FRONTEND_HTTP_PERSONAL_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "access/scope.h"
#include "frontend/http_server.h"
#include "frontend/protocol_parts.h"
#include "inference/mailbox.h"

namespace foliot {

// Parts between slashes.
bool is_personal_path(const std::vector<std::string>& path);
// REQUIRES: is_personal_path().
Scope scope_of_personal_path(const std::vector<std::string>& path);
// False: there is no such path. REQUIRES: is_personal_path().
bool serve_personal_path(HttpExchange& exchange, const std::vector<std::string>& path, const ProtocolParts& parts,
                         const std::shared_ptr<Mailbox>& mailbox);

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_HTTP_PERSONAL_H_
