// LinkedReplicaPlace: replicas as devices of a cluster's controller: each is a worker of its
// own there, with a link of its own, which offers its one model. Front ends send inputs to
// it directly, as to any worker.
#ifndef FOLIOT_NODE_REPLICAS_LINKED_REPLICA_PLACE_H_
#define FOLIOT_NODE_REPLICAS_LINKED_REPLICA_PLACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cluster/transport/connection.h"
#include "foundation/base/time.h"
#include "foundation/logging/logger.h"
#include "node/files/access_files.h"
#include "node/replicas/replica_place.h"

namespace foliot {

struct LinkedReplicaOptions {
  std::string worker;                             // before the replica's name in the controller's log
  std::string controller;                         // HOST:PORT of each, with commas between them
  std::string data_host;                          // that each listens on for front ends, at a port that is free
  std::string data_address_host;                  // by which these reach it; empty: data_host
  uint64_t frame_bytes_max = kDataFrameBytesMax;  // inputs or outputs of one row
  uint64_t held_bytes = 0;
  Duration drain_timeout = Duration::seconds(30);
  TlsFiles link_tls;
  std::function<void(Severity, const std::string&)> log = [](Severity, const std::string&) {};
  // One is registered with the controller; from any thread.
  std::function<void()> on_registered = [] {};
};

class LinkedReplicaPlace : public ReplicaPlace {
 public:
  explicit LinkedReplicaPlace(LinkedReplicaOptions options) : options_(std::move(options)) {}

  ModelSink& planner() override { return no_planner_; }
  std::unique_ptr<Session> make_session(const std::string& name, const std::string& kind,
                                        std::shared_ptr<const ModelInfo> model) override;

 private:
  class LinkedSession;
  // Each session offers its model itself.
  class NoPlanner : public ModelSink {
   public:
    Status check(const ModelInfo& /*model*/) const override { return Status(); }
    void add_model(std::shared_ptr<const ModelInfo> /*model*/) override {}
    bool takes_parts() const override { return false; }
    void extend_model(std::shared_ptr<const ModelInfo> /*model*/) override {}
    void remove_model(ModelId /*model*/, std::function<void()> gone) override { gone(); }
  };

  const LinkedReplicaOptions options_;
  NoPlanner no_planner_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPLICAS_LINKED_REPLICA_PLACE_H_
