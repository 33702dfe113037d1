// Ids: names of things, as small integers. The controller assigns all of them except
// RequestId, which the front end that took the request assigns.
#ifndef FOLIOT_FOUNDATION_CORE_IDS_H_
#define FOLIOT_FOUNDATION_CORE_IDS_H_

#include "foundation/base/id.h"

namespace foliot {

using ModelId = Id<struct ModelTag, uint32_t>;
// One device of one worker: the controller schedules devices, not machines.
using DeviceId = Id<struct DeviceTag, uint32_t>;
// A kind of device, by the order in which the controller met its name.
using KindId = Id<struct KindTag, uint16_t>;
using ActionId = Id<struct ActionTag, uint64_t>;
using RequestId = Id<struct RequestTag, uint64_t>;
// Position of a bucket (one declared combination of variable dimensions, e.g.
// sequence = 128) in ModelInfo::buckets. A model without any has one, 0.
using BucketId = Id<struct BucketTag, uint16_t>;
// The owner of one API key, on every front end (tenant_named() in foundation/core/request.h); 0:
// clients without a key.
using TenantId = Id<struct TenantTag, uint32_t>;
// A pipeline as it is run (foundation/core/pipeline_info.h); 0: none.
using PipelineId = Id<struct PipelineTag, uint32_t>;
// A task as it is served (foundation/core/task_info.h), anew whenever its variants change; 0: none.
using ServedTaskId = Id<struct ServedTaskTag, uint32_t>;
// Names a payload at its holder; the controller passes it on unread (foundation/core/payload.h).
using PayloadHandle = Id<struct PayloadTag, uint64_t>;

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_IDS_H_
