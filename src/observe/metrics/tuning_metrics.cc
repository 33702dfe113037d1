#include "observe/metrics/tuning_metrics.h"

#include <prometheus/text_serializer.h>

#include <map>
#include <utility>

#include "foundation/base/mutex.h"
#include "observe/metrics/families.h"

namespace foliot {
namespace {

using prometheus::Family;
using prometheus::Gauge;

}  // namespace

struct TuningMetrics::Series {
  using Name = std::pair<std::string, std::string>;  // pipeline and stage

  // Sets those that are there, and removes the others.
  static void set(Family<Gauge>& family, std::map<Name, Gauge*>& gauges, const std::map<Name, uint32_t>& values) {
    std::erase_if(gauges, [&](const auto& each) {
      if (values.contains(each.first)) return false;
      family.Remove(each.second);
      return true;
    });
    for (const auto& [name, value] : values) {
      Gauge*& gauge = gauges[name];
      if (gauge == nullptr) gauge = &family.Add({{"pipeline", name.first}, {"stage", name.second}});
      gauge->Set(value);
    }
  }

  prometheus::Registry registry;
  Family<Gauge>& wanted = gauge_family(registry, "foliot_pipeline_replicas_wanted",
                                       "Replicas that the tuner of a pipeline wants of a stage now");
  Family<Gauge>& planned =
      gauge_family(registry, "foliot_pipeline_replicas_planned", "Replicas that the plan of a pipeline has of a stage");
  Mutex mutex;
  // Owned by the registry.
  std::map<Name, Gauge*> wanted_gauges GUARDED_BY(mutex);
  std::map<Name, Gauge*> planned_gauges GUARDED_BY(mutex);
};

TuningMetrics::TuningMetrics() : series_(std::make_unique<Series>()) {}
TuningMetrics::~TuningMetrics() = default;

void TuningMetrics::set(const std::vector<Stage>& stages) {
  std::map<Series::Name, uint32_t> wanted;
  std::map<Series::Name, uint32_t> planned;
  for (const Stage& stage : stages) {
    wanted[{stage.pipeline, stage.stage}] = stage.wanted;
    planned[{stage.pipeline, stage.stage}] = stage.planned;
  }
  const MutexLock lock(series_->mutex);
  Series::set(series_->wanted, series_->wanted_gauges, wanted);
  Series::set(series_->planned, series_->planned_gauges, planned);
}

std::string TuningMetrics::text() const { return prometheus::TextSerializer().Serialize(series_->registry.Collect()); }

}  // namespace foliot
