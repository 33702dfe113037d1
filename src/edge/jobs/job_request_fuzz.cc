// libFuzzer target: any text, read as what a client posts, as an offline job's request, and as a job that was kept.
#include <cstddef>
#include <cstdint>
#include <string>

#include "edge/jobs/job.h"
#include "edge/jobs/offline_request.h"
#include "foundation/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto request = foliot::parse_job_request(text);
  FOLIOT_CHECK(request.ok() || request.status().code() == foliot::StatusCode::kInvalidArgument);
  if (request.ok()) {
    FOLIOT_CHECK(!request->kind.empty());
    const auto offline = foliot::OfflineRequest::parse(request->request);
    if (offline.ok()) {
      FOLIOT_CHECK(!offline->name.empty() && !offline->inputs.empty() && !offline->output.empty());
      FOLIOT_CHECK(!offline->accuracy || (*offline->accuracy >= 0 && *offline->accuracy <= 1));
    }
  }
  const auto job = foliot::job_from_json(text);
  if (job.ok()) FOLIOT_CHECK(foliot::job_from_json(foliot::to_json(*job)).ok());
  return 0;
}
