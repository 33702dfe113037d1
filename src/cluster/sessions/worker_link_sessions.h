// The sessions of a WorkerLink, one class for each kind of peer: they decode frames and refuse those
// that are out of place. What the frames mean is the link's. For worker_link.cc only.
//
// Threading: the loop's thread.
#ifndef FOLIOT_CLUSTER_SESSIONS_WORKER_LINK_SESSIONS_H_
#define FOLIOT_CLUSTER_SESSIONS_WORKER_LINK_SESSIONS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/sessions/worker_link.h"
#include "cluster/transport/peer_clock.h"

namespace foliot {

// With the controller, which gives actions.
class WorkerLink::ControllerSession : public Session {
 public:
  ControllerSession(WorkerLink& link, Connection& connection)
      : link_(link), connection_(connection), host_clock_(connection) {}

  void start(TimePoint now) { host_clock_.start(now); }
  void keep(TimePoint now) { host_clock_.keep(now); }
  Connection& connection() { return connection_; }
  const ClockOffset& offset() const { return host_clock_.offset(); }
  bool can_register() const { return host_clock_.ready() && !registered_; }
  bool registered() const { return registered_; }
  bool welcome() const { return !devices_.empty(); }
  // The position of the device that the controller knows by this id; nullopt: none of these.
  std::optional<DeviceId> own(DeviceId device) const {
    const auto found = std::ranges::find(devices_, device);
    if (found == devices_.end()) return std::nullopt;
    return DeviceId(static_cast<uint32_t>(found - devices_.begin()));
  }
  void register_with(const Registration& registration) {
    registered_ = true;
    connection_.send(registration);
  }
  void leave() {
    if (registered_) connection_.send(Leave{});
  }

  Status on_frame(const Frame& frame, TimePoint now) override;
  void on_close(const Status& reason, TimePoint now) override;

 private:
  bool is_obeyed() const { return link_.controller_ == this; }
  Status on_standby_frame(const Frame& frame, TimePoint now);
  Status on_pong(const Frame& frame, TimePoint now);

  Status on_welcome(const Frame& frame, TimePoint now);
  Status on_workers(const Frame& frame);
  Status on_naming(const Frame& frame);
  Status on_release(const Frame& frame);

  Status on_visits(const Frame& frame);
  Status on_discard(const Frame& frame);
  Status on_action(const Frame& frame, TimePoint now);

  WorkerLink& link_;
  Connection& connection_;
  PeerClock host_clock_;
  bool registered_ = false;
  std::vector<DeviceId> devices_;  // as the controller knows them, once it is welcome
  std::optional<Visits> visits_;   // of the action that comes next
};

// With a front end, which has inputs and gets outputs.
class WorkerLink::ClientSession : public Session {
 public:
  ClientSession(WorkerLink& link, Connection& connection, TimePoint now)
      : link_(link), connection_(connection), last_message_(now) {}

  Connection& connection() { return connection_; }
  // As it was sent; nullopt: it has not.
  const std::optional<Attach>& attach() const { return attach_; }
  // By which it is attached; nullopt: it is not.
  std::optional<uint16_t> number() const { return number_; }
  void set_number(std::optional<uint16_t> number) { number_ = number; }
  void check(TimePoint now);

  Status on_frame(const Frame& frame, TimePoint now) override;
  void on_close(const Status& reason, TimePoint now) override;

 private:
  Status on_attach(const Frame& frame, TimePoint now);
  Status on_inputs(const Frame& frame, TimePoint now);
  Status on_consumed(const Frame& frame);

  WorkerLink& link_;
  Connection& connection_;
  TimePoint last_message_;
  std::optional<Attach> attach_;
  std::optional<uint16_t> number_;
};

// With another worker, whose payloads are fetched.
class WorkerLink::HolderSession : public Session {
 public:
  HolderSession(WorkerLink& link, Connection& connection) : link_(link), connection_(connection), clock_(connection) {}

  void start(TimePoint now) { clock_.start(now); }
  // Its clock is of no interest, but that it answers is.
  void keep(TimePoint now) { clock_.keep(now); }
  Connection& connection() { return connection_; }
  const std::string& address() const { return connection_.ends().dialed; }

  Status on_frame(const Frame& frame, TimePoint now) override;
  void on_close(const Status& reason, TimePoint now) override;

 private:
  Status on_inputs(const Frame& frame, TimePoint now);
  Status on_pong(const Frame& frame, TimePoint now);

  WorkerLink& link_;
  Connection& connection_;
  PeerClock clock_;
};

// With another worker, which fetches payloads.
class WorkerLink::FetcherSession : public Session {
 public:
  FetcherSession(const WorkerLink& link, Connection& connection) : link_(link), connection_(connection) {}

  Status on_frame(const Frame& frame, TimePoint now) override;
  void on_close(const Status& reason, TimePoint now) override;

 private:
  const WorkerLink& link_;
  Connection& connection_;
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_WORKER_LINK_SESSIONS_H_
