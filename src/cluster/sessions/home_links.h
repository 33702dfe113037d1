// HomeLinks: a front end's links to the other front ends that keep users of personal models. It connects to each that
// the controller names, asks over these connections, and answers over those that the others have made.
//
// It is a part of the front end's link handler (frontend_link.h), and drives its UserShards.
//
// Threading: post() from any thread; the rest belongs to the loop's thread.
#ifndef FOLIOT_CLUSTER_SESSIONS_HOME_LINKS_H_
#define FOLIOT_CLUSTER_SESSIONS_HOME_LINKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/sessions/user_shards.h"
#include "cluster/transport/connection.h"
#include "cluster/transport/link_handler.h"
#include "cluster/transport/message.h"
#include "foundation/base/mutex.h"
#include "foundation/base/status.h"
#include "foundation/logging/logger.h"

namespace foliot {

class HomeLinks : public ShardPeers {
 public:
  using Log = std::function<void(Severity, const std::string&)>;
  using Event = std::function<void(TimePoint now)>;

  // `name`: of this front end.
  HomeLinks(std::string name, Log log) : own_{std::move(name), {}}, log_(std::move(log)) {}
  ~HomeLinks() override;

  // Before the loop runs; both outlive it. `address`: at which the loop listens.
  void start(UserShards& shards, LinkControl& loop, std::string address);
  // What the controller is sent. `host`: where this side is, as the controller sees it.
  HomeOffer offer(const std::string& host) const;
  void set_homes(const Homes& homes, TimePoint now);
  Result<std::unique_ptr<Session>> on_open(Connection& connection, TimePoint now);
  TimePoint on_turn_end(TimePoint now);
  // Called in the next turn. Bounded by those that post: one event for each call of a client, and for each that it
  // waits for.
  void post(Event event);
  // What was posted. In each turn, and once after the loop has ended.
  void handle_events(TimePoint now);

  bool is_connected(const std::string& home) const override { return connected_.contains(home); }
  void send(const std::string& home, const HomeCall& call) override;
  void reply(uint64_t channel, const HomeReply& reply) override;

 private:
  class CallerSession;
  class HomeSession;

  HomeOffer own_;
  const Log log_;
  UserShards* shards_ = nullptr;
  LinkControl* loop_ = nullptr;
  std::map<std::string, std::string> names_;         // of the others, by address
  std::map<std::string, CallerSession*> connected_;  // by name
  std::map<uint64_t, HomeSession*> channels_;        // of the front ends that ask this one
  uint64_t last_channel_ = 0;
  TimePoint next_look_;
  Mutex mutex_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_HOME_LINKS_H_
