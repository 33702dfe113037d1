// ProtocolParts: what the protocols work with.
#ifndef FOLIOT_FRONTEND_PROTOCOL_PARTS_H_
#define FOLIOT_FRONTEND_PROTOCOL_PARTS_H_

#include "core/catalog.h"
#include "frontend/gate.h"
#include "frontend/server_settings.h"
#include "frontend/unknown_names.h"
#include "inference/inference.h"
#include "inference/personal_service.h"
#include "inference/served_names.h"
#include "inference/statistics.h"
#include "jobs/job_service.h"

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
  PersonalService* personal = nullptr;  // null: there are no personal models
  JobService* jobs = nullptr;           // null: no jobs are kept
};

}  // namespace foliot

#endif  // FOLIOT_FRONTEND_PROTOCOL_PARTS_H_
