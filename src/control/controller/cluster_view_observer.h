// ClusterViewObserver: makes a ClusterView of what the controller does, every interval.
//
// Events count while the sink wants views, the first of which comes an interval after it began
// to. One counts at a cost that does not depend on how much there is, and allocates nothing
// once tables have grown to what is in flight. A view costs what has changed, and a pass over
// models and devices; durations are read again of those models only that ran or were loaded.
//
// Threading: Observer's calls and on_time(), from the controller's loop.
#ifndef FOLIOT_CONTROL_CONTROLLER_CLUSTER_VIEW_OBSERVER_H_
#define FOLIOT_CONTROL_CONTROLLER_CLUSTER_VIEW_OBSERVER_H_

#include <cstdint>
#include <vector>

#include "control/controller/cluster.h"
#include "control/controller/cluster_view.h"
#include "foundation/base/bit_set.h"
#include "foundation/base/flat_map.h"
#include "foundation/core/observer.h"

namespace foliot {

class ClusterViewObserver : public Observer {
 public:
  static constexpr Duration kInterval = Duration::milliseconds(100);

  // `cluster` is that of the controller that is observed, which has no models yet; it and
  // `sink` outlive the observer.
  ClusterViewObserver(const Cluster& cluster, ClusterViewSink& sink, TimePoint now, Duration interval = kInterval)
      : cluster_(cluster), sink_(sink), interval_(interval), last_(now) {}

  // Gives the sink a view if one is due; so does every event with a time. To be called now
  // and then, so that there are views where nothing happens.
  void on_time(TimePoint now);

  void on_model(const ModelInfo& model) override;
  void on_model_extended(const ModelInfo& model) override { measured_.insert(model.id.value()); }
  void on_request(const Request& request, TimePoint now) override;
  void on_action(const Action& action, TimePoint now) override;
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint now) override;
  void on_completion(const Completion& completion, TimePoint now) override;

 private:
  struct Open {
    ModelId model;
    RequestClass request_class = RequestClass::kDeadline;
    bool queued = true;
  };
  // Whether events count. Begins anew when the sink wants views again.
  bool counts(TimePoint now);
  void make_view(TimePoint now);
  ModelView* view_of(ModelId model);
  void set_queued(Open& open, bool queued);
  void look_at_models();
  void look_at_durations(ModelId model);
  void look_at_kinds();

  const Cluster& cluster_;
  ClusterViewSink& sink_;
  Duration interval_;
  TimePoint last_;
  bool wanted_ = true;  // when it was asked last
  ClusterView view_;
  FlatMap<RequestId, Open> open_;          // requests without a completion
  std::vector<uint64_t> arrivals_before_;  // by ModelId: at the last view
  std::vector<Duration> busy_;             // by KindId: EXECs since the last view
  BitSet measured_;                        // models of which durations may be others
  std::vector<DeviceId> stands_for_;       // by KindId, in a view: the first device of the kind
};

}  // namespace foliot

#endif  // FOLIOT_CONTROL_CONTROLLER_CLUSTER_VIEW_OBSERVER_H_
