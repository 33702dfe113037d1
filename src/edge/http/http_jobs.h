// Jobs over HTTP, with the JSON of edge/jobs/job.h:
//
//   POST /v2/jobs            {"kind": "offline", ...}: 202 and the job; of some kinds it needs a scope beside `jobs`
//   GET  /v2/jobs            {"jobs": [...]}, in the order of submission
//   GET  /v2/jobs/ID         the job
//   POST /v2/jobs/ID/cancel  the job
//
// A key sees and cancels the jobs that it submitted, and one with the scope `admin` all of them; others are unknown to
// it.
//
// Threading: the HTTP server's I/O thread.
#ifndef FOLIOT_EDGE_HTTP_HTTP_JOBS_H_
#define FOLIOT_EDGE_HTTP_HTTP_JOBS_H_

#include <memory>
#include <string>
#include <vector>

#include "answer/inference/mailbox.h"
#include "edge/http/http_server.h"
#include "edge/requests/protocol_parts.h"

namespace foliot {

// Parts between slashes.
bool is_jobs_path(const std::vector<std::string>& path);
// False: there is no such path. REQUIRES: is_jobs_path().
bool serve_jobs_path(HttpExchange& exchange, const std::vector<std::string>& path, const ProtocolParts& parts,
                     const std::shared_ptr<Mailbox>& mailbox);

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_HTTP_JOBS_H_
