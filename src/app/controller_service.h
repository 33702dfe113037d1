// ControllerService: the controller as the host of workers and clients. Turns their
// messages into the controller's events, and what it sends into theirs.
//
// All workers bring the same models; the first one says which. A worker that is
// lost is not missed in this version: what it had to do has failed, and so does what
// it is given afterwards, until the controller is restarted. Whatever strange
// message a peer sends ends its connection and nothing else.
//
// Threading: belongs to the loop that drives it.
#ifndef FOLIOT_APP_CONTROLLER_SERVICE_H_
#define FOLIOT_APP_CONTROLLER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/histogram.h"
#include "controller/controller.h"
#include "core/ports.h"
#include "transport/link_loop.h"

namespace foliot {

// The loop's clock, where a duration within a turn is measured.
using ClockFunction = TimePoint (*)();

class ControllerService : public LinkHost, private ActionSink, private CompletionSink {
 public:
  // One line for whoever watches: who came, who went and why.
  using Log = std::function<void(const std::string&)>;

  ControllerService(const ControllerOptions& options, const Controller::SchedulerFactory& make_scheduler,
                    ClockFunction clock, Log log);
  ~ControllerService() override;

  // Before the first event.
  Controller& controller() { return controller_; }
  // What the statistics say of the sockets; outlives the service.
  void set_traffic(const LinkTraffic& traffic) { traffic_ = &traffic; }

  Result<std::unique_ptr<Conversation>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& peer, const Status& reason) override;
  TimePoint on_turn_end(TimePoint now) override;

 private:
  class WorkerConversation;
  class ClientConversation;
  // An action that was sent and has no outcome yet.
  struct Outstanding {
    ActionType type;
    ModelId model;
  };
  struct Device {
    WorkerConversation* worker = nullptr;  // null: lost
    std::unordered_map<ActionId, Outstanding> outstanding;
  };
  // A client's number (transport/client_ids.h) is its place in clients_. A place is given to another client once it has
  // no request in flight.
  struct Client {
    ClientConversation* conversation = nullptr;  // null: it is gone
    uint64_t in_flight = 0;
  };
  struct Counters {
    TimePoint since;
    Duration processor_time_before;
    uint64_t requests = 0;
    uint64_t served = 0;
    uint64_t actions = 0;
    Histogram decisions;
  };

  void log_gone(const std::string& who, const Connection& connection, const Status& reason);
  void send(const Action& action) override;
  void complete(const Completion& completion) override;

  Result<Welcome> register_worker(WorkerConversation& worker, const Registration& registration, TimePoint now);
  Status check_models(const std::vector<ModelInfo>& models) const;
  void add_models(const std::vector<ModelInfo>& models, TimePoint now);
  Status on_outcome(WorkerConversation& worker, const Outcome& outcome, TimePoint now);
  void on_worker_lost(WorkerConversation& worker, TimePoint now);
  void fail(ActionId id, const Outstanding& action, DeviceId device, TimePoint now);
  void fail_what_is_lost(TimePoint now);
  Workers workers() const;
  void tell_workers();
  Result<uint16_t> add_client(ClientConversation& client);
  void on_request(uint16_t client, Request request, TimePoint now);
  Statistics take_statistics(TimePoint now);

  const ClockFunction clock_;
  const Log log_;
  Controller controller_;
  std::vector<Device> devices_;  // by DeviceId
  std::vector<DeviceId> given_to_the_lost_;
  std::vector<Client> clients_;
  Counters counters_;
  const LinkTraffic* traffic_ = nullptr;
};

}  // namespace foliot

#endif  // FOLIOT_APP_CONTROLLER_SERVICE_H_
