#include "virtual/cluster/cluster_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/sessions/model_registry.h"
#include "cluster/transport/client_ids.h"
#include "cluster/transport/codec.h"
#include "foundation/base/check.h"
#include "foundation/core/stage_visit.h"

namespace foliot {

// What one controller has decided and sent so far.
class ClusterChecker::Controller : public Observer {
 public:
  Controller(ClusterChecker& checker, uint64_t process) : checker_(checker), process_(process) {}

  void on_model(const ModelInfo& model) override {
    for (const auto& [link, session] : checker_.sessions_) {
      if (session.controller == process_ && session.stays()) require_offer(session, model);
    }
    const TimePoint now = checker_.loop_.now();
    const auto [place, is_new] = models_.try_emplace(model.id);
    // Clocks differ by some parts in a million.
    const Duration rest = ModelRegistry::kIdRest - Duration::milliseconds(100);
    if (!is_new && place->second.content != model.content && now - place->second.mentioned < rest) {
      checker_.fail(fmt::format("ModelId {} is '{}' {:.3f} s after it was '{}'", model.id.value(), model.content,
                                (now - place->second.mentioned).to_seconds(), place->second.content));
    }
    place->second = {model.content, now};
  }
  void on_request(const Request& request, TimePoint /*now*/) override {
    if (!requests_.insert(request.id.value()).second) {
      checker_.fail(fmt::format("request {} comes a second time", request.id.value()));
    }
    ++clients_[client_of(request.id)].open;
  }
  void on_completion(const Completion& completion, TimePoint /*now*/) override {
    --clients_[client_of(completion.id)].open;
  }
  void on_action(const Action& action, TimePoint /*now*/) override { actions_[action.id] = joined_[action.device]; }
  void on_outcome(const Action& action, const Outcome& outcome, TimePoint /*now*/) override {
    const auto given = actions_.find(action.id);
    const bool current = given != actions_.end() && given->second == joined_[action.device];
    if (outcome.status != OutcomeStatus::kLost && !current) {
      checker_.fail(fmt::format("action {} of an earlier session of device {} has an outcome", action.id.value(),
                                action.device.value()));
    }
    actions_.erase(action.id);
  }
  void on_device(const DeviceChange& change, TimePoint /*now*/) override {
    if (change.joined || change.state == DeviceState::kLost) ++joined_[change.device];
  }

  // The action is to take what this visit made.
  void take(RequestId visit, ActionId action) {
    if (released_.contains(visit)) {
      checker_.fail(
          fmt::format("action {} takes what visit {} made, which was released", action.value(), visit.value()));
    }
    takers_[visit].push_back(action);
  }
  void release(RequestId visit) {
    if (!released_.insert(visit).second) {
      checker_.fail(fmt::format("what visit {} made is released a second time", visit.value()));
    }
    const auto takers = takers_.find(visit);
    if (takers == takers_.end()) return;
    if (std::ranges::any_of(takers->second, [&](ActionId action) { return actions_.contains(action); })) {
      checker_.fail(fmt::format("what visit {} made is released, and an action takes it", visit.value()));
    }
    takers_.erase(takers);
  }

  // What a link that is closed already still sends does not count.
  void admit(LinkNumber link, uint16_t number) {
    if (closed_.contains(link)) return;
    Client& client = clients_[number];
    if (client.link != 0 || client.open != 0) {
      checker_.fail(fmt::format("client number {} is given away; it has {} requests open and {}", number, client.open,
                                client.link == 0 ? "no link" : "a link"));
    }
    client.link = link;
  }
  void close(LinkNumber link) {
    closed_.insert(link);
    for (auto& [number, client] : clients_) {
      if (client.link == link) client.link = 0;
    }
  }
  void show(const Models& models) {
    shown_.clear();
    for (const ModelInfo& model : models.models) {
      mention(model.id);
      shown_.emplace(model.id, model.content);
    }
  }
  void mention(ModelId model) {
    const auto found = models_.find(model);
    if (found != models_.end()) found->second.mentioned = checker_.loop_.now();
  }
  const std::string* content(ModelId model) const {
    const auto found = models_.find(model);
    return found == models_.end() ? nullptr : &found->second.content;
  }
  // What clients are shown is known to all workers that stay; what they are shown no more
  // has been replaced, or withdrawn by all of them.
  void check_shown() {
    for (const auto& [model, content] : std::exchange(shown_before_, shown_)) {
      if (shown_.contains(model) || is_shown(name_of(content))) continue;
      for (const auto& [link, session] : checker_.sessions_) {
        const auto own = session.named.find(model);
        if (session.controller != process_ || !session.stays() || own == session.named.end()) continue;
        if (session.offers.at(own->second).withdrawn) continue;
        checker_.fail(fmt::format("'{}' is shown no more, though a worker has not withdrawn it", content));
      }
    }
    for (const auto& [link, session] : checker_.sessions_) {
      if (session.controller != process_ || !session.stays()) continue;
      for (const auto& [model, content] : shown_) {
        const auto own = session.named.find(model);
        if (own == session.named.end()) {
          checker_.fail(
              fmt::format("'{}' is shown as model {}, and a worker does not know it", content, model.value()));
        } else if (session.offers.at(own->second).content != content) {
          checker_.fail(fmt::format("model {} is '{}', and '{}' for a worker", model.value(), content,
                                    session.offers.at(own->second).content));
        }
      }
    }
  }

 private:
  struct Model {
    std::string content;
    TimePoint mentioned;
  };
  struct Client {
    LinkNumber link = 0;  // 0: it is gone
    int64_t open = 0;
  };

  // "resnet50 3": the name comes first (simulated_version()).
  static std::string name_of(const std::string& content) { return content.substr(0, content.rfind(' ')); }
  bool is_shown(const std::string& name) const {
    return std::ranges::any_of(shown_, [&](const auto& entry) { return name_of(entry.second) == name; });
  }

  // What it withdraws at this very instant may have come after the decision.
  void require_offer(const Session& session, const ModelInfo& model) {
    const TimePoint now = checker_.loop_.now();
    const bool offers = std::ranges::any_of(session.offers, [&](const auto& entry) {
      const Offered& offered = entry.second;
      return offered.content == model.content && !offered.released && offered.withdrawn.value_or(now) == now;
    });
    if (!offers) checker_.fail(fmt::format("'{}' comes to be served, and a worker does not offer it", model.content));
  }

  ClusterChecker& checker_;
  const uint64_t process_;
  std::map<ModelId, Model> models_;
  std::map<ModelId, std::string> shown_;  // content, as last sent to clients
  std::map<ModelId, std::string> shown_before_;
  std::unordered_set<uint64_t> requests_;
  std::map<uint16_t, Client> clients_;
  std::set<LinkNumber> closed_;
  std::map<ActionId, uint64_t> actions_;  // without an outcome: joined_ when they were sent
  std::set<RequestId> released_;          // visits of stages
  std::map<RequestId, std::vector<ActionId>> takers_;
  std::map<DeviceId, uint64_t> joined_;  // how often it has joined or was lost
};

ClusterChecker::ClusterChecker(const VirtualLoop& loop) : loop_(loop) {}
ClusterChecker::~ClusterChecker() = default;

void ClusterChecker::fail(const std::string& what) {
  if (failure_.empty()) failure_ = fmt::format("at {:.6f} s: {}", (loop_.now() - TimePoint()).to_seconds(), what);
}

Observer& ClusterChecker::add_controller(uint64_t process) {
  return *controllers_.emplace(process, std::make_unique<Controller>(*this, process)).first->second;
}

size_t ClusterChecker::workers_of(uint64_t controller) const {
  return static_cast<size_t>(std::ranges::count_if(
      sessions_, [&](const auto& entry) { return entry.second.controller == controller && entry.second.stays(); }));
}

template <typename Message>
Message ClusterChecker::read(const Frame& frame) {
  Message message;
  if (const Status status = decode(frame, message); !status.ok()) fail("a frame that cannot be read");
  return message;
}

// ---- What a controller receives ----

void ClusterChecker::on_received(const LinkEnd& to, const Frame& frame) {
  if (!controllers_.contains(to.process)) return;
  if (frame.type == MessageType::kRegistration) return on_registration(to, read<Registration>(frame));
  const auto found = sessions_.find(to.link);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  switch (frame.type) {
    case MessageType::kOffer: {
      const auto offer = read<Offer>(frame);
      session.offers[offer.model.id] = {offer.model.content, {}, {}, false};
      return;
    }
    case MessageType::kWithdrawal: {
      const auto offered = session.offers.find(read<Withdrawal>(frame).model);
      if (offered != session.offers.end()) offered->second.withdrawn = loop_.now();
      return;
    }
    case MessageType::kLeave: session.leaving = true; return;
    default: return;
  }
}

void ClusterChecker::on_registration(const LinkEnd& to, const Registration& registration) {
  Session& session = sessions_[to.link];
  session = {.controller = to.process};
  for (const ModelInfo& model : registration.models) {
    session.registered.push_back(model.id);
    session.offers[model.id] = {model.content, {}, {}, false};
  }
}

// ---- What it sends ----

void ClusterChecker::on_sent(const LinkEnd& from, const Frame& frame) {
  if (frame.type == MessageType::kOutputs) {
    const PayloadReference held = read<Outputs>(frame).held;
    if (held && !held_.emplace(held.holder->value(), held.handle.value()).second) {
      fail(
          fmt::format("payload {} of device {} is given out a second time", held.handle.value(), held.holder->value()));
    }
  }
  const auto found = controllers_.find(from.process);
  if (found == controllers_.end()) return;
  Controller& controller = *found->second;
  switch (frame.type) {
    case MessageType::kWelcome: return on_welcome(from, read<Welcome>(frame));
    case MessageType::kNaming: {
      const auto naming = read<Naming>(frame);
      const auto session = sessions_.find(from.link);
      if (session != sessions_.end()) name(controller, session->second, naming.model, naming.name);
      return;
    }
    case MessageType::kRelease: {
      const auto session = sessions_.find(from.link);
      if (session != sessions_.end()) on_release(session->second, read<Release>(frame));
      return;
    }
    case MessageType::kVisits: {
      const auto session = sessions_.find(from.link);
      if (session != sessions_.end()) session->second.visits = read<Visits>(frame);
      return;
    }
    case MessageType::kDiscard: return controller.release(read<Discard>(frame).visit);
    case MessageType::kAction: return on_action(from, read<Action>(frame));
    case MessageType::kModels: return controller.show(read<Models>(frame));
    case MessageType::kAdmission: return controller.admit(from.link, read<Admission>(frame).client);
    default: return;
  }
}

void ClusterChecker::on_welcome(const LinkEnd& from, const Welcome& welcome) {
  const auto found = sessions_.find(from.link);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  for (const auto& [link, other] : sessions_) {
    if (link == from.link || other.controller != from.process || !other.welcome) continue;
    for (const DeviceId device : welcome.devices) {
      if (std::ranges::find(other.devices, device) != other.devices.end()) {
        fail(fmt::format("device {} is two workers'", device.value()));
      }
    }
  }
  session.welcome = true;
  session.devices = welcome.devices;
  if (welcome.models.size() != session.registered.size()) return fail("a WELCOME that does not fit the registration");
  for (size_t i = 0; i < welcome.models.size(); ++i) {
    if (welcome.models[i] != kUnnamed) {
      name(*controllers_.at(from.process), session, session.registered[i], welcome.models[i]);
    }
  }
}

void ClusterChecker::name(Controller& controller, Session& session, ModelId own, ModelId name) {
  const auto offered = session.offers.find(own);
  if (offered == session.offers.end()) return fail(fmt::format("model {} of a worker's has a name", own.value()));
  const std::string* content = controller.content(name);
  if (content == nullptr || *content != offered->second.content) {
    fail(fmt::format("model {} is '{}', and '{}' for a worker", name.value(), content ? *content : "none",
                     offered->second.content));
  }
  if (!session.named.emplace(name, own).second)
    fail(fmt::format("two models of a worker's are model {}", name.value()));
  offered->second.name = name;
  controller.mention(name);
}

void ClusterChecker::on_release(Session& session, const Release& release) {
  const auto offered = session.offers.find(release.model);
  if (offered == session.offers.end()) return fail("a RELEASE of a model that is not offered");
  if (offered->second.name) {
    controllers_.at(session.controller)->mention(*offered->second.name);
    session.named.erase(*offered->second.name);
  }
  offered->second.released = true;
  offered->second.name.reset();
}

void ClusterChecker::on_action(const LinkEnd& from, const Action& action) {
  Controller& controller = *controllers_.at(from.process);
  controller.mention(action.model);
  const auto found = sessions_.find(from.link);
  if (found == sessions_.end()) return;  // the rest of a session that is closed
  Session& session = found->second;
  if (action.type == ActionType::kInfer && !action.range.ends()) ++cuts_;
  if (session.visits.action == action.id) {
    for (const auto& [row, order] : std::exchange(session.visits, {}).visits) {
      const RequestId run = run_of(action.rows[row].request);
      for (const VisitOrder::Input& input : order.inputs) {
        for (const VisitOrder::Piece& piece : input.pieces) {
          if (piece.slot) controller.take(visit_of(run, *piece.slot), action.id);
        }
      }
    }
  }
  if (!session.welcome || std::ranges::find(session.devices, action.device) == session.devices.end()) {
    return fail(fmt::format("action {} goes to a worker that does not have device {}", action.id.value(),
                            action.device.value()));
  }
  if (!session.named.contains(action.model)) {
    fail(fmt::format("action {} is of model {}, which the worker does not know", action.id.value(),
                     action.model.value()));
  }
}

void ClusterChecker::on_closed(const LinkEnd& end) {
  const auto found = controllers_.find(end.process);
  if (found == controllers_.end()) return;
  sessions_.erase(end.link);
  found->second->close(end.link);
}

void ClusterChecker::on_turn(uint64_t process) {
  const auto found = controllers_.find(process);
  if (found != controllers_.end()) found->second->check_shown();
}

}  // namespace foliot
