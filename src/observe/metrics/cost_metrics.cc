#include "observe/metrics/cost_metrics.h"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/base/flat_map.h"
#include "observe/metrics/families.h"
#include "observe/metrics/gone_models.h"

namespace foliot {
namespace {

using prometheus::Counter;
using prometheus::Family;

}  // namespace

struct CostMetrics::Accounts {
  // Of one tenant and model; owned by the registry, null until something is charged.
  struct Charges {
    Counter* exec = nullptr;
    Counter* pages = nullptr;
  };
  struct Model {
    std::string name;
    std::map<std::string, uint32_t, std::less<>> pages;  // by kind
    FlatMap<TenantId, Charges> charges;
  };
  struct Device {
    std::string kind;
    double dollars_per_second = 0;
    uint32_t lane_count = 1;
    uint32_t page_count = 0;  // 0: not known yet
    TimePoint joined;
    double busy_dollars = 0;                        // of EXECs since then
    std::unordered_map<ModelId, double> residents;  // what its idle time had cost when each was charged last

    double idle_dollars(TimePoint now) const {
      return std::max(0.0, (now - joined).to_seconds() * dollars_per_second - busy_dollars);
    }
  };

  void set_model(const ModelInfo& info) {
    Model& model = models[info.id];
    if (model.name != info.name) model = {.name = info.name};
    for (const Runnable& runnable : info.runnables) model.pages[runnable.kind] = runnable.pages;
    gone_models.on_model(info.id, info.name);
  }

  void charge(Model& model, TenantId tenant, Counter* Charges::*what, const char* of, double dollars) {
    Counter*& counter = model.charges[tenant].*what;
    if (counter == nullptr) {
      counter = &family.Add({{"model", model.name},
                             {"of", of},
                             {"tenant_id", tenant == TenantId() ? "" : fmt::format("{:08x}", tenant.value())}});
      counters[model.name].insert(counter);
    }
    counter->Increment(dollars);
  }

  // What its pages have cost since it was charged last.
  double take_pages(Device& device, ModelId id, const Model& model, TimePoint now) {
    const auto resident = device.residents.find(id);
    const auto pages = model.pages.find(device.kind);
    if (resident == device.residents.end() || pages == model.pages.end() || device.page_count == 0) return 0;
    const double idle = device.idle_dollars(now);
    const double since = std::max(0.0, idle - resident->second);
    resident->second = idle;
    return since * pages->second / device.page_count;
  }

  void unload(Device& device, ModelId id, TimePoint now) {
    const auto model = models.find(id);
    if (model == models.end()) return;
    const double dollars = take_pages(device, id, model->second, now);
    if (dollars > 0) charge(model->second, TenantId(), &Charges::pages, "pages", dollars);
    device.residents.erase(id);
  }

  void compute(Device& device, const Action& action, const Outcome& outcome, TimePoint now) {
    const auto found = models.find(action.model);
    if (found == models.end() || action.rows.size() == 0) return;
    const double exec =
        outcome.duration.to_seconds() * device.dollars_per_second * action.lanes.count / device.lane_count;
    device.busy_dollars += exec;
    const double pages = take_pages(device, action.model, found->second, now);
    const double rows = static_cast<double>(action.rows.size());
    for (const BatchRows::Row& row : action.rows) {
      const TenantId* const open = tenants.find(row.request);
      const TenantId tenant = open == nullptr ? TenantId() : *open;
      if (exec > 0) charge(found->second, tenant, &Charges::exec, "exec", exec / rows);
      if (pages > 0) charge(found->second, tenant, &Charges::pages, "pages", pages / rows);
    }
  }

  void forget(const std::string& model) {
    for (Counter* const counter : counters[model]) family.Remove(counter);
    counters.erase(model);
  }

  DevicePrices prices;
  prometheus::Registry registry;
  Family<Counter>& family =
      counter_family(registry, "foliot_dollars_total",
                     "What devices cost, by model and tenant: of the EXECs of its rows, and of the pages "
                     "that the model had while its devices computed nothing");
  std::unordered_map<ModelId, Model> models;
  GoneModels gone_models;
  std::unordered_map<std::string, std::set<Counter*>> counters;  // by model
  std::vector<Device> devices;                                   // by DeviceId
  FlatMap<RequestId, TenantId> tenants;                          // of requests of tenants that are not over
};

CostMetrics::CostMetrics(DevicePrices prices) : accounts_(std::make_unique<Accounts>()) {
  accounts_->prices = std::move(prices);
}
CostMetrics::~CostMetrics() = default;

std::string CostMetrics::text() const { return prometheus::TextSerializer().Serialize(accounts_->registry.Collect()); }

void CostMetrics::on_model(const ModelInfo& model) { accounts_->set_model(model); }
void CostMetrics::on_model_removed(ModelId model, TimePoint now) {
  accounts_->gone_models.on_removed(model, now);
  accounts_->models.erase(model);
}
void CostMetrics::on_model_extended(const ModelInfo& model) { accounts_->set_model(model); }

void CostMetrics::on_device(const DeviceChange& change, TimePoint now) {
  std::vector<Accounts::Device>& devices = accounts_->devices;
  const size_t id = change.device.value();
  if (id >= devices.size()) devices.resize(id + 1);
  Accounts::Device& device = devices[id];
  if (change.joined || change.state == DeviceState::kLost) {
    std::vector<ModelId> residents;
    for (const auto& [model, charged] : device.residents) residents.push_back(model);
    for (const ModelId model : residents) accounts_->unload(device, model, now);
    device = {};
  }
  if (!change.joined) return;
  device.kind = change.kind;
  device.dollars_per_second = accounts_->prices.dollars_per_second(change.kind);
  device.lane_count = change.lane_count;
  device.joined = now;
  for (const ModelId model : change.residents) device.residents[model] = 0;
}

void CostMetrics::on_pages(DeviceId device, uint32_t /*used*/, uint32_t total) {
  if (device.value() < accounts_->devices.size()) accounts_->devices[device.value()].page_count = total;
}

void CostMetrics::on_request(const Request& request, TimePoint /*now*/) {
  if (request.tenant != TenantId()) accounts_->tenants.insert(request.id, request.tenant);
}

void CostMetrics::on_outcome(const Action& action, const Outcome& outcome, TimePoint now) {
  if (action.device.value() >= accounts_->devices.size() || outcome.status == OutcomeStatus::kLost) return;
  Accounts::Device& device = accounts_->devices[action.device.value()];
  switch (action.type) {
    case ActionType::kLoad:
      if (outcome.done()) device.residents[action.model] = device.idle_dollars(now);
      break;
    case ActionType::kUnload:
      if (outcome.done()) accounts_->unload(device, action.model, now);
      break;
    case ActionType::kInfer: accounts_->compute(device, action, outcome, now); break;
  }
}

void CostMetrics::on_completion(const Completion& completion, TimePoint now) {
  accounts_->gone_models.expire(now, [this](const std::string& model) { accounts_->forget(model); });
  accounts_->tenants.erase(completion.id);
}

}  // namespace foliot
