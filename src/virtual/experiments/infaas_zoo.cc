#include "virtual/experiments/infaas_zoo.h"

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {

const std::vector<ZooArchitecture>& infaas_architectures() {
  // The first four are the paper's popular ones.
  static const std::vector<ZooArchitecture> all{
      {"densenet121", 1.1, 0.749},
      {"resnet50", 1.0, 0.760},
      {"vgg16", 1.6, 0.713},
      {"inceptionv3", 1.3, 0.779},
      {"mobilenetv1", 0.3, 0.704},
      {"mobilenetv2", 0.3, 0.713},
      {"alexnet", 0.25, 0.566},
      {"densenet169", 1.4, 0.762},
      {"densenet201", 1.8, 0.773},
      {"resnet50v2", 1.0, 0.760},
      {"resnet101", 1.9, 0.764},
      {"resnet101v2", 1.9, 0.772},
      {"resnet152", 2.7, 0.766},
      {"resnet152v2", 2.7, 0.780},
      {"resnext50", 1.2, 0.777},
      {"resnext101", 2.2, 0.787},
      {"vgg19", 2.0, 0.713},
      {"inceptionv4", 2.6, 0.801},
      {"inceptionresnetv2", 2.9, 0.804},
      {"nasnetmobile", 0.6, 0.744},
      {"nasnetlarge", 5.0, 0.825},
      {"gnmt", 4.0, 0.700},
  };
  return all;
}

FleetWorkers infaas_workers(const std::string& kind, uint32_t count, uint32_t most) {
  // On-demand prices of 2020, dollars per hour. A CPU worker has two instances of 4 CPUs, an
  // Inferentia chip four cores; a GPU is counted in quarters.
  if (kind == "cpu") return {"cpu", count, std::min(count, 1u), most, 2, 2, per_second_of_hourly(0.384)};
  if (kind == "inferentia") return {"inferentia", count, 0, most, 4, 4, per_second_of_hourly(0.584)};
  FOLIOT_CHECK(kind == "gpu");
  return {"gpu", count, std::min(count, 1u), most, 4, 1, per_second_of_hourly(3.06)};
}

std::vector<Variant> infaas_variants(const ZooArchitecture& architecture, Duration slo,
                                     const std::vector<std::string>& which) {
  struct MeasuredShape {
    std::string name, kind;
    std::vector<std::pair<uint32_t, double>> ms;  // of ResNet-50
    double load_seconds;
  };
  static const std::vector<MeasuredShape> shapes{
      {"cpu", "cpu", {{1, 200}}, 1.0},
      {"inferentia", "inferentia", {{1, 10}}, 3.0},
      {"gpu-1", "gpu", {{1, 3}}, 5.0},
      {"gpu-8", "gpu", {{1, 3.2}, {2, 4}, {4, 6}, {8, 10}}, 6.0},
      {"gpu-32", "gpu", {{1, 3.6}, {8, 11}, {16, 18}, {32, 30}}, 7.0},
  };
  std::vector<Variant> variants;
  for (const std::string& name : which) {
    const auto shape = std::ranges::find(shapes, name, &MeasuredShape::name);
    FOLIOT_CHECK(shape != shapes.end());
    Variant variant{
        .name = name, .architecture = architecture.name, .kind = shape->kind, .accuracy = architecture.accuracy};
    for (const auto& [batch, ms] : shape->ms) {
      variant.latencies.push_back({batch, Duration::from_milliseconds(ms * architecture.work)});
    }
    variant.load = Duration::from_seconds(shape->load_seconds * (0.6 + 0.4 * architecture.work));
    const FleetWorkers workers = infaas_workers(shape->kind, 1, 1);
    const double shares_at_once = shape->kind == "gpu" ? workers.shares : 1;
    variant.saturation = saturation_within(variant.latencies, slo) / shares_at_once;
    // Table 2: 1, 3 and 16 for 4 CPUs, an Inferentia core and a GPU; the 16 are a p3.2xlarge.
    const int64_t weight = shape->kind == "cpu" ? 1 : shape->kind == "inferentia" ? 3 : 4;
    variant.price = per_second_of_hourly(3.06 / 16) * weight;
    variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace foliot
