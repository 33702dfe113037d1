// Models of the repository over HTTP:
//
//   POST /v2/repository/models/NAME/load      {"parameters": {...}}: VersionRequest, of a personal model
//   POST /v2/repository/models/NAME/unload
//   GET  /v2/repository/models/NAME/versions  of a personal model: {"model": "films", "served": "2", "before": "1",
//     "chosen": false, "versions": [{"version": "2", "state": "served", "reason": "",
//     "comparison": {"with": "1", "observations": 90, "users": 40, "loss": 0.9, "loss_with": 1.1}}]}
//
// States: served, before, kept_aside with the reason, idle (not tried since the start).
//
// Threading: the HTTP server's I/O thread.
#ifndef FOLIOT_EDGE_HTTP_HTTP_REPOSITORY_H_
#define FOLIOT_EDGE_HTTP_HTTP_REPOSITORY_H_

#include <memory>
#include <string>

#include "answer/inference/mailbox.h"
#include "edge/http/http_server.h"
#include "edge/requests/protocol_parts.h"

namespace foliot {

// False: there is no such path.
bool serve_repository_model(HttpExchange& exchange, const std::string& model, const std::string& what,
                            const ProtocolParts& parts, const std::shared_ptr<Mailbox>& mailbox);

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_REPOSITORY_H_
