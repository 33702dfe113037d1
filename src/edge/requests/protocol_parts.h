// ProtocolParts: what the protocols work with.
#ifndef FOLIOT_EDGE_REQUESTS_PROTOCOL_PARTS_H_
#define FOLIOT_EDGE_REQUESTS_PROTOCOL_PARTS_H_

#include "answer/inference/inference.h"
#include "answer/inference/personal_service.h"
#include "answer/inference/served_names.h"
#include "answer/inference/statistics.h"
#include "edge/jobs/job_service.h"
#include "edge/requests/gate.h"
#include "edge/requests/server_settings.h"
#include "edge/requests/unknown_names.h"
#include "foundation/core/catalog.h"

namespace foliot {

// All references outlive what is made from them.
struct ProtocolParts {
  Inference& inference;
  const ServedNames& names;
  CallStatistics& statistics;
  ModelRepository& repository;
  const Gate& gate;
  UnknownNames& unknown_names;
  LogLevels log_levels{};
  TraceExport traces{};
  PersonalService* personal = nullptr;  // null: there are no personal models
  JobService* jobs = nullptr;           // null: no jobs are kept
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_PROTOCOL_PARTS_H_
