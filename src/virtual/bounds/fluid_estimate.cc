#include "virtual/bounds/fluid_estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace foliot {
namespace {

constexpr int kHalvings = 60;

double seconds(Duration duration) { return duration.to_seconds(); }

struct Load {
  double devices = 0;
  double rate = 0;           // of flows that can be served at all
  double hopeless_rate = 0;  // of the others
};

Load load_of(const std::vector<FluidFlow>& flows, double scale) {
  Load load;
  for (FluidFlow flow : flows) {
    flow.rate *= scale;
    const double rate = flow.rate * static_cast<double>(flow.models);
    const double batch = fluid_batch(flow);
    if (batch == 0) {
      load.hopeless_rate += rate;
      continue;
    }
    load.rate += rate;
    load.devices += rate * seconds(batch_duration(*flow.profile, batch)) / batch;
  }
  return load;
}

// The most requests per second that fit on the devices: those that cost least
// first, each model at the batch size that its full rate allows.
double served_rate(const std::vector<FluidFlow>& flows, double devices) {
  struct Cost {
    double device_seconds;  // per request
    double rate;
  };
  std::vector<Cost> costs;
  for (const FluidFlow& flow : flows) {
    const double batch = fluid_batch(flow);
    if (batch == 0) continue;
    costs.push_back(
        {seconds(batch_duration(*flow.profile, batch)) / batch, flow.rate * static_cast<double>(flow.models)});
  }
  std::sort(costs.begin(), costs.end(),
            [](const Cost& a, const Cost& b) { return a.device_seconds < b.device_seconds; });
  double served = 0;
  for (const Cost& cost : costs) {
    const double rate = std::min(cost.rate, std::max(devices, 0.0) / cost.device_seconds);
    served += rate;
    devices -= rate * cost.device_seconds;
  }
  return served;
}

// Of a ramp: where it is highest.
double mean_rate(const ArrivalOptions& arrivals) {
  return arrivals.kind == ArrivalKind::kRamp ? std::max(arrivals.rate, arrivals.ramp_rate) : arrivals.rate;
}

}  // namespace

Duration batch_duration(const ModelProfile& profile, double size) {
  const auto& sizes = profile.batch_sizes;
  const auto above = std::lower_bound(sizes.begin(), sizes.end(), size);
  if (above == sizes.end()) return profile.exec.back().scaled(size / sizes.back());
  const auto index = static_cast<size_t>(above - sizes.begin());
  if (index == 0) return profile.exec.front();
  const double low = sizes[index - 1];
  const double share = (size - low) / (sizes[index] - low);
  return profile.exec[index - 1] + (profile.exec[index] - profile.exec[index - 1]).scaled(share);
}

double fluid_batch(const FluidFlow& flow) {
  const double largest = flow.profile->batch_sizes.back();
  if (flow.slo == Duration::max()) return largest;
  const double slo = seconds(flow.slo);
  if (seconds(flow.profile->exec.front()) > slo) return 0;
  // Within each piece, L(b) = L(from) + slope * (b - from): solved as it is.
  const auto& sizes = flow.profile->batch_sizes;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const double from = sizes[i];
    const double duration = seconds(flow.profile->exec[i]);
    const double slope = (seconds(flow.profile->exec[i + 1]) - duration) / (sizes[i + 1] - from);
    const double batch = (1 + flow.rate * (slo - duration + slope * from)) / (1 + flow.rate * slope);
    if (batch <= sizes[i + 1]) return std::max(batch, from);
  }
  return largest;
}

FluidEstimate fluid_estimate(const std::vector<FluidFlow>& flows, uint32_t devices) {
  FluidEstimate bound;
  const Load load = load_of(flows, 1);
  const double offered = load.rate + load.hopeless_rate;
  if (offered == 0) return bound;
  bound.devices_needed = load.devices;
  bound.attainment = load.devices <= devices ? load.rate / offered : served_rate(flows, devices) / offered;
  double low = 0, high = 1;
  while (load_of(flows, high).devices <= devices && high < 1e9) high *= 2;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (load_of(flows, middle).devices <= devices ? low : high) = middle;
  }
  bound.rate_scale = low;
  bound.rate = low * offered;
  return bound;
}

std::vector<FluidFlow> fluid_flows(const Workload& workload, const ProfileTable& profiles) {
  // Models that several streams ask are one flow each, at the tightest of their SLOs.
  struct ModelFlow {
    double rate = 0;
    Duration slo = Duration::max();
  };
  std::vector<ModelFlow> by_model(workload.models());
  const std::vector<uint32_t> groups = workload.group_of_models();
  for (const Stream& stream : workload.streams) {
    if (stream.concurrency > 0 || stream.trace != nullptr || stream.arrivals.kind == ArrivalKind::kReplay) continue;
    const std::vector<uint32_t> models = workload.models_of(stream);
    double sum = 0;
    for (size_t i = 0; i < models.size(); ++i) sum += std::pow(static_cast<double>(i + 1), -stream.zipf);
    for (size_t i = 0; i < models.size(); ++i) {
      ModelFlow& flow = by_model[models[i]];
      flow.rate += mean_rate(stream.arrivals) * std::pow(static_cast<double>(i + 1), -stream.zipf) / sum;
      const auto& group = workload.groups[groups[models[i]]];
      const auto slo = stream.best_effort ? std::nullopt : stream.slo ? stream.slo : group.slo;
      flow.slo = std::min(flow.slo, slo.value_or(Duration::max()));
    }
  }
  std::map<std::tuple<uint32_t, double, int64_t>, uint64_t> alike;
  for (uint32_t model = 0; model < by_model.size(); ++model) {
    const ModelFlow& flow = by_model[model];
    if (flow.rate > 0) ++alike[{groups[model], flow.rate, flow.slo.nanoseconds()}];
  }
  std::vector<FluidFlow> flows;
  for (const auto& [key, count] : alike) {
    const auto& [group, rate, slo] = key;
    flows.push_back({profiles.find(workload.groups[group].profile), rate, Duration::nanoseconds(slo), count});
  }
  return flows;
}

}  // namespace foliot
