// ClusterChecker: watches a simulated cluster and notes the first promise that is broken.
// It knows what passes over the links, and what controllers decide, and nothing of how:
//
//   offered     a model comes to be served only if every worker that stays offers it, is
//               shown to clients only while all of them know its name, and goes only if it
//               is replaced or all of them have withdrawn it
//   named       a worker is given actions of devices that are its own and of models that
//               it knows by that name, with that content
//   fenced      a controller takes in no outcome of an action of an earlier session
//   ids         no device is two workers'; no client's number is another's while requests
//               of it are open; no request's number comes twice; a ModelId means another
//               model only after it has not been mentioned for ModelRegistry::kIdRest
//
//   held        no worker gives out a reference to outputs that it holds a second time; what a visit of a
//               pipeline's stage made is released once, when no visit takes it and none will
//
// The nodes check the rest and call fail(): each request ends once, in time, with outputs of
// its own version, inputs and action, be those inputs its own or outputs that are held; a
// worker runs nothing of an earlier session.
#ifndef FOLIOT_VIRTUAL_CLUSTER_CLUSTER_CHECKER_H_
#define FOLIOT_VIRTUAL_CLUSTER_CLUSTER_CHECKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cluster/transport/message.h"
#include "foundation/core/observer.h"
#include "virtual/cluster/virtual_network.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {

class ClusterChecker : public LinkTap {
 public:
  explicit ClusterChecker(const VirtualLoop& loop);
  ~ClusterChecker() override;

  // What was broken first, with its instant; empty: nothing.
  const std::string& failure() const { return failure_; }
  bool ok() const { return failure_.empty(); }
  void fail(const std::string& what);
  void require(bool condition, const char* what) {
    if (!condition) fail(what);
  }

  // A controller's process begins. The observer is to see what it decides; the checker
  // keeps it.
  Observer& add_controller(uint64_t process);
  void add_worker(uint64_t process) { workers_.insert(process); }
  // Workers that this controller has taken in and not lost.
  size_t workers_of(uint64_t controller) const;

  void on_sent(const LinkEnd& from, const Frame& frame) override;
  void on_received(const LinkEnd& to, const Frame& frame) override;
  void on_closed(const LinkEnd& end) override;
  void on_turn(uint64_t process) override;
  // INFERs that were sent and leave their batch unfinished.
  uint64_t cuts() const { return cuts_; }

 private:
  class Controller;
  // A model of a worker's, by the worker's own id.
  struct Offered {
    std::string content;
    std::optional<ModelId> name;
    std::optional<TimePoint> withdrawn;
    bool released = false;
  };
  // A worker's session with a controller, as the controller knows it.
  struct Session {
    uint64_t controller = 0;
    bool welcome = false;
    bool leaving = false;
    std::vector<ModelId> registered;  // own ids, in the order of the registration
    std::vector<DeviceId> devices;
    std::map<ModelId, Offered> offers;
    std::map<ModelId, ModelId> named;  // own ids, by name
    Visits visits;                     // of the action that follows

    bool stays() const { return welcome && !leaving; }
  };

  template <typename Message>
  Message read(const Frame& frame);
  void on_registration(const LinkEnd& to, const Registration& registration);
  void on_welcome(const LinkEnd& from, const Welcome& welcome);
  void on_release(Session& session, const Release& release);
  void on_action(const LinkEnd& from, const Action& action);
  void name(Controller& controller, Session& session, ModelId own, ModelId name);

  const VirtualLoop& loop_;
  uint64_t cuts_ = 0;
  std::string failure_;
  std::set<uint64_t> workers_;
  std::map<uint64_t, std::unique_ptr<Controller>> controllers_;  // by process
  std::map<LinkNumber, Session> sessions_;
  std::set<std::pair<uint32_t, uint64_t>> held_;  // references that were given out
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_CLUSTER_CLUSTER_CHECKER_H_
