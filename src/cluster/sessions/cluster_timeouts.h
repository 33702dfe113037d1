// ClusterTimeouts: what limits the sessions of front ends and workers in time; that of
// their links is in cluster/transport/link_timeouts.h, that of devices in
// control/controller/failure_detector.h, that of models in model_registry.h.
#ifndef FOLIOT_CLUSTER_SESSIONS_CLUSTER_TIMEOUTS_H_
#define FOLIOT_CLUSTER_SESSIONS_CLUSTER_TIMEOUTS_H_

#include "foundation/base/time.h"

namespace foliot {

struct ClusterTimeouts {
  // How often clocks, silent peers and what is overdue are checked.
  Duration check_interval = Duration::milliseconds(20);
  // Front end: a request without a deadline whose answer, or whose outputs, do not come.
  Duration answer = Duration::seconds(10);
  // Front end: a model that is not served any more is still asked for by those that found
  // it in the catalog before; the controller runs it for longer.
  Duration withdrawn_model = Duration::seconds(1);
  // Front end: how long what was asked waits for another leader, once one that was elected is lost; several times what
  // a standby takes.
  Duration takeover = Duration::seconds(5);
  // Front end: what has no more time left than that does not wait: about as long as a standby takes.
  Duration takeover_min = Duration::seconds(1);
  // Worker: a front end without a message; it sends pings.
  Duration frontend_silence = Duration::seconds(4);
  // Worker: inputs of an action that may begin at any time.
  Duration inputs = Duration::seconds(5);
  // Worker: outputs that it holds for requests of which no more is received: longer than any of
  // those waits that has a use for its answer.
  Duration held_payload = Duration::seconds(60);
  // Worker: without an action after its Leave, since the controller may have sent more
  // before it received that.
  Duration drain_quiet = Duration::milliseconds(200);
};

inline constexpr ClusterTimeouts kClusterTimeouts{};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_CLUSTER_TIMEOUTS_H_
