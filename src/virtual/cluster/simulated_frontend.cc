// SimulatedFrontend: its process, with FrontendLink where the controller of a whole server
// stands, and payloads of a few bytes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cluster/sessions/controller_addresses.h"
#include "cluster/transport/peer_clock.h"
#include "foundation/base/check.h"
#include "foundation/core/stage_slots.h"
#include "foundation/core/stage_visit.h"
#include "foundation/core/task_info.h"
#include "virtual/cluster/cluster_nodes.h"
#include "virtual/cluster/simulated_run.h"

namespace foliot {
namespace {

// A request may end so long after its deadline: a controller that does not answer is given
// up after PeerClock::kSilenceMax, and the last of its answers may have been late.
constexpr Duration kOverdueMax = PeerClock::kSilenceMax * 2;

// What a worker holds as the input of a second step.
struct FirstStep {
  PayloadReference held;
  SimulatedRow input{};
};

}  // namespace

struct SimulatedFrontend::Process : private RequestOrigin {
  explicit Process(SimulatedFrontend& of)
      : node(of),
        link(catalog, of.options_.requests_max,
             {.log = [](Severity, const std::string&) {}, .on_ready = [](size_t) {}}),
        links(of.world_.network, of.host_, of.clock_, {.role = Role::kClient}, link),
        payloads(of.options_.requests_max) {
    for (uint32_t i = of.options_.requests_max; i-- > 0;) free.push_back(i);
    link.start(*this, links);
  }

  struct Payload {
    bool used = false;
    Request request;
    uint64_t content = 0;  // of the version that was asked for
    uint64_t tag = 0;
    OnEnd on_end;
    SimulatedRow input{};
    SimulatedRow output{};
    std::shared_ptr<const ModelInfo> info;
    ReceivedRun run{};                     // of a pipeline
    std::shared_ptr<const TaskInfo> task;  // of a row of a task's call
  };
  bool submit(const std::string& model, Duration slo, uint64_t tag, const OnEnd& on_end, const FirstStep& first = {}) {
    const Catalog::EntryPtr entry = catalog.find(model);
    if (entry == nullptr || entry->state != ModelState::kReady || free.empty()) return false;
    uint16_t consumers = 0;
    const PipelineInfo* pipeline = entry->info->pipeline.get();
    if (entry->info->task != nullptr) return submit_call(entry->info->task, slo, tag, on_end, first);
    if (pipeline == nullptr && node.options_.two_steps > 0 && !first.held &&
        node.random_.uniform() < node.options_.two_steps) {
      consumers = static_cast<uint16_t>(1 + node.random_.below(2));
    }
    const TimePoint now = node.now();
    const uint32_t place = free.back();
    free.pop_back();
    const Request request{.id = RequestId(next_request++),
                          .model = entry->info->id,
                          .pipeline = pipeline == nullptr ? PipelineId() : pipeline->id,
                          .payload = PayloadHandle(place),
                          .input = first.held,
                          .consumers = consumers,
                          .arrival = now,
                          .deadline = slo == Duration::max() ? TimePoint::infinite_future() : now + slo,
                          .offline = is_offline(slo)};
    const SimulatedRow own = draw_input(request.id, entry->info->inputs.size());
    Payload& payload = payloads[place];
    payload = {};
    payload.used = true;
    payload.request = request;
    payload.content = content_hash(*entry->info);
    payload.tag = tag;
    payload.on_end = on_end;
    payload.input = first.held ? first.input : own;
    payload.info = entry->info;
    if (pipeline != nullptr) payload.run.visits.resize(StageSlots(*pipeline).size());
    return send(request);
  }
  // The client's call ends with its first row.
  bool submit_call(const std::shared_ptr<const TaskInfo>& task, Duration slo, uint64_t tag, const OnEnd& on_end,
                   const FirstStep& first) {
    const auto rows = static_cast<uint32_t>(1 + node.random_.below(3));
    if (free.size() < rows) return false;
    const TimePoint now = node.now();
    Request request{.id = {},
                    .model = {},
                    .task = task->id,
                    .requirements = {.accuracy = node.random_.below(2) == 0 ? 0.1 : 0.9},
                    .call = RequestId(next_request),
                    .call_rows = rows,
                    .arrival = now,
                    .deadline = slo == Duration::max() ? TimePoint::infinite_future() : now + slo,
                    .offline = is_offline(slo)};
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t place = free.back();
      free.pop_back();
      request.id = RequestId(next_request++);
      request.payload = PayloadHandle(place);
      request.input = row == 0 ? first.held : PayloadReference();
      Payload& payload = payloads[place];
      payload = {};
      payload.used = true;
      payload.request = request;
      payload.tag = tag;
      if (row == 0) payload.on_end = on_end;
      payload.info = task->variants.front().model;
      payload.input = request.input ? first.input : draw_input(request.id, payload.info->inputs.size());
      payload.task = task;
      send(request);
    }
    return true;
  }
  bool is_offline(Duration slo) {
    return slo == Duration::max() && node.options_.offline > 0 && node.random_.uniform() < node.options_.offline;
  }
  SimulatedRow draw_input(RequestId request, size_t tensors) {
    SimulatedRow input{{node.random_.next(), request.value(), 0}};
    for (size_t i = SimulatedRow::kWords; tensors > 1 && i < input.words.size(); ++i)
      input.words[i] = node.random_.next();
    return input;
  }
  bool send(const Request& request) {
    const bool labelled = node.random_.uniform() < node.options_.labelled;
    const bool cancelled = node.random_.uniform() < node.cancelled_;
    ++node.tally_.submitted;
    link.submit_labelled(request, labelled ? std::make_shared<const CallLabel>(call_label("a call")) : nullptr);
    if (cancelled) cancel_later(request.id);
    return true;
  }
  void cancel_later(RequestId request) {
    const Duration wait = Duration::milliseconds(20).scaled(node.random_.exponential());
    node.world_.loop.at(node.world_.loop.now() + wait, [this, request] {
      links.post([this, request] { link.cancel(request, Refusal::kCancelled); });
    });
  }

  void complete(const Completion& completion) override {
    ClusterChecker& checker = node.world_.checker;
    const uint64_t place = completion.payload.value();
    if (place >= payloads.size() || !payloads[place].used) return checker.fail("a request ends a second time");
    Payload& payload = payloads[place];
    checker.require(completion.arrival == payload.request.arrival, "a request ends as another");
    if (completion.served()) check_answer(payload, completion);
    if (completion.refusal == Refusal::kModelError) check_model_error(payload);
    ClusterTally& tally = node.tally_;
    completion.served() ? ++tally.served : ++tally.refused[static_cast<size_t>(completion.refusal)];
    node.world_.hash.on_completion(completion, node.now());
    const Payload over = std::exchange(payload, {});
    free.push_back(static_cast<uint32_t>(place));
    if (completion.outputs) return take_second_step(over, completion);
    if (!over.on_end) return;
    const bool as_expected = completion.served() || completion.refusal == Refusal::kModelError;
    over.on_end(over.tag,
                as_expected ? std::string() : fmt::format("{} {}", to_string(completion.refusal), completion.detail));
  }
  // The client's call ends with its first consumer. Those that cannot be submitted are
  // released.
  void take_second_step(const Payload& over, const Completion& completion) {
    const FirstStep first{completion.outputs, made_of(over, over.content, completion.action)};
    const Request& request = over.request;
    const Duration slo = request.best_effort() ? Duration::max() : request.deadline - request.arrival;
    uint16_t left = request.consumers;
    for (OnEnd on_end = over.on_end; left > 0; --left, on_end = {}) {
      const std::string model = draw_model();
      if (submit(model, slo, over.tag, on_end, first)) continue;
      if (on_end) on_end(over.tag, "turned away");
      break;
    }
    if (left > 0) link.release(first.held, left);
  }
  void check_answer(const Payload& payload, const Completion& completion) {
    ClusterChecker& checker = node.world_.checker;
    checker.require(completion.outputs.holder.has_value() == (payload.request.consumers > 0),
                    "outputs are held without consumers, or not held for them");
    if (completion.outputs) return;
    checker.require(node.now() <= payload.request.deadline, "an answer after its deadline counts as served");
    if (payload.info->pipeline != nullptr) return check_run(payload, completion);
    const uint64_t content = payload.task == nullptr ? payload.content : content_of_variant(payload, completion);
    const SimulatedRow made = made_of(payload, content, completion.action);
    checker.require(payload.output.content() == content, "an answer is of another version than was asked for");
    checker.require(payload.output.input() == made.input(), "an answer is of another request's inputs");
    checker.require(payload.output.action() == made.action(), "an answer has another action's outputs");
    for (uint32_t tensor = 1; tensor < payload.info->outputs.size(); ++tensor) {
      checker.require(std::ranges::equal(payload.output.bytes(tensor), made.bytes(tensor)),
                      "an answer has other elements than its action made");
    }
  }
  static SimulatedRow made_of(const Payload& payload, uint64_t content, ActionId action) {
    return simulated_output(content, payload.input.hash(static_cast<uint32_t>(payload.info->inputs.size())),
                            action.value());
  }
  // It is as accurate as was asked, and the same for all rows of the call.
  uint64_t content_of_variant(const Payload& payload, const Completion& completion) {
    ClusterChecker& checker = node.world_.checker;
    const TaskVariant* variant = payload.task->find(completion.model);
    if (variant == nullptr) {
      checker.fail("a task's answer names no variant of it");
      return 0;
    }
    checker.require(variant->accuracy >= payload.request.requirements.accuracy,
                    "a variant is less accurate than asked");
    const ModelId chosen = chosen_of_calls.try_emplace(payload.request.call, completion.model).first->second;
    checker.require(chosen == completion.model, "rows of one call have several variants");
    return content_hash(*variant->model);
  }
  void check_run(const Payload& payload, const Completion& completion) {
    std::map<uint32_t, ActionId> actions;
    for (const Completion::VisitAnswer& answer : completion.visits) {
      node.world_.checker.require(actions.emplace(answer.slot, answer.action).second, "a visit counts twice");
    }
    const std::string wrong = check_simulated_run(*payload.info, payload.input, actions, payload.run);
    if (!wrong.empty()) node.world_.checker.fail(wrong);
  }
  // A simulated model fails in no other way.
  void check_model_error(const Payload& payload) {
    const bool is_run = payload.info != nullptr && payload.info->pipeline != nullptr;
    node.world_.checker.require(is_run && counts_too_many(*payload.info, payload.input),
                                "a request is refused for a model's error that there was not");
  }
  std::span<const std::byte> input(PayloadHandle handle, uint32_t index) override {
    const Payload& payload = payloads.at(handle.value());
    const bool is_run = payload.info->pipeline != nullptr;
    return payload.input.bytes(is_run ? simulated_input(*payload.info, index) : index);
  }
  VisitReading finish(PayloadHandle visit) override {
    ++visit_at(visit).ends;
    return {};
  }
  void finish_empty(PayloadHandle run, uint32_t stage) override {
    payloads.at(run.value()).run.empty_stages.push_back(stage);
  }
  std::span<std::byte> output(PayloadHandle payload, uint32_t index) override {
    if (visit_slot(payload)) return visit_at(payload).outputs.bytes(index);
    return payloads.at(payload.value()).output.bytes(index);
  }
  ReceivedRun::Visit& visit_at(PayloadHandle visit) {
    return payloads.at(run_of(visit).value()).run.visits.at(*visit_slot(visit));
  }

  // None waits long after its deadline.
  void check_overdue() {
    for (const Payload& payload : payloads) {
      if (!payload.used || payload.request.best_effort()) continue;
      node.world_.checker.require(node.now() - payload.request.deadline <= kOverdueMax,
                                  "a request has no end long after its deadline");
    }
  }

  // One of those that are ready; empty: none is.
  std::string draw_model() {
    std::vector<std::string> ready;
    for (const auto& [name, entry] : catalog.snapshot()) {
      if (entry->state == ModelState::kReady) ready.push_back(name);
    }
    return ready.empty() ? std::string() : ready[node.random_.below(ready.size())];
  }

  SimulatedFrontend& node;
  Catalog catalog;
  FrontendLink link;
  VirtualLinkLoop links;
  std::vector<Payload> payloads;
  std::vector<uint32_t> free;
  std::map<RequestId, ModelId> chosen_of_calls;  // of tasks, by their first rows
  uint64_t next_request = 1;
};

SimulatedFrontend::SimulatedFrontend(ClusterWorld& world, const std::string& name, const NodeClock& clock,
                                     const SimulatedFrontendOptions& options, uint64_t seed, ClusterTally& tally)
    : SimulatedNode(world, name, clock),
      options_(options),
      cancelled_(options.cancelled),
      random_(seed),
      tally_(tally) {}
SimulatedFrontend::~SimulatedFrontend() = default;

void SimulatedFrontend::make_process() {
  Process& process = *processes_.emplace_back(std::make_unique<Process>(*this));
  FOLIOT_CHECK(keep_controllers(process.links, options_.controller).ok());
}

void SimulatedFrontend::end_process() {
  tally_.lost += in_flight();
  for (Process::Payload& payload : processes_.back()->payloads) {
    if (payload.used && payload.on_end) payload.on_end(payload.tag, "lost");
  }
}

VirtualLinkLoop& SimulatedFrontend::links() { return processes_.back()->links; }

// Clients cannot reach a front end that is gone. One that stands still takes what they send
// when it goes on.
void SimulatedFrontend::ask(const std::string& model, Duration slo, uint64_t tag, const OnEnd& on_end) {
  const auto turn_away = [this, tag, on_end] {
    ++tally_.submitted;
    ++tally_.turned_away;
    if (on_end) on_end(tag, "turned away");
  };
  if (!runs()) return turn_away();
  Process* process = processes_.back().get();
  process->links.post([process, model, slo, tag, on_end, turn_away] {
    if (!process->submit(model, slo, tag, on_end)) turn_away();
  });
}

void SimulatedFrontend::check() {
  if (runs() && awake_for() > kOverdueMax) processes_.back()->check_overdue();
}

uint64_t SimulatedFrontend::in_flight() const {
  const Process& process = *processes_.back();
  return process.payloads.size() - process.free.size();
}

ModelVersions SimulatedFrontend::shown() const {
  ModelVersions shown;
  for (const auto& [name, entry] : processes_.back()->catalog.snapshot()) {
    if (entry->state == ModelState::kReady && entry->role == EntryRole::kModel) shown[name] = version_of(*entry->info);
  }
  return shown;
}

std::set<std::string> SimulatedFrontend::shown(EntryRole role) const {
  std::set<std::string> shown;
  for (const auto& [name, entry] : processes_.back()->catalog.snapshot()) {
    if (entry->state == ModelState::kReady && entry->role == role) shown.insert(name);
  }
  return shown;
}

size_t SimulatedFrontend::connections() { return processes_.back()->links.connections(); }

}  // namespace foliot
