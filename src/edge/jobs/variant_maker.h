// VariantMaker: makes what a registration needs of a network that is not in the repository: its int8 form and the rows
// of its validation set. A port: the real one is Python in a confined process (node/repository/variant_process.h).
#ifndef FOLIOT_EDGE_JOBS_VARIANT_MAKER_H_
#define FOLIOT_EDGE_JOBS_VARIANT_MAKER_H_

#include "edge/jobs/job_kind.h"
#include "edge/jobs/registration_folder.h"
#include "foundation/base/status.h"

namespace foliot {

class VariantMaker {
 public:
  virtual ~VariantMaker() = default;
  // Reads the folder's source() and fills its made(), as edge/jobs/registration_folder.h has them. Returns early, with
  // any status, once the context is over. Errors: kInvalidArgument naming what is wrong with the network or the set;
  // kResourceExhausted at a limit. Threading: any.
  virtual Status make(const RegistrationFolder& folder, const JobContext& context) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_JOBS_VARIANT_MAKER_H_
