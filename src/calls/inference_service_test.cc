#include "calls/inference_service.h"

#include <atomic>

#include "calls/fake_controller.h"
#include "inference/conformance/inference_conformance.h"

namespace foliot {
namespace {

class ServiceHarness final : public InferenceHarness {
 public:
  ServiceHarness() {
    put_conformance_models(catalog_);
    controller_.add_model(ModelId(1), compute_doubling);
    controller_.start(service_);
  }
  ~ServiceHarness() override { controller_.stop(); }
  Inference& inference() override { return service_; }
  TimePoint now() override { return steady_now() + Duration::nanoseconds(ahead_); }
  void advance(Duration duration) override { ahead_ += duration.nanoseconds(); }
  void hold() override { controller_.hold(); }
  void release() override { controller_.release(); }
  void refuse(Refusal refusal, const std::string& detail) override { controller_.refuse(refusal, detail); }

 private:
  std::atomic<int64_t> ahead_{0};
  Catalog catalog_;
  ServedNames names_{catalog_};
  CallStatistics statistics_;
  Metrics metrics_{statistics_};
  FakeController controller_;
  InferenceService service_{
      {.rows_max = 64, .bytes_max = 1 << 20}, names_, controller_, statistics_, metrics_, [this] { return now(); }};
};

std::unique_ptr<InferenceHarness> make_service() { return std::make_unique<ServiceHarness>(); }

INSTANTIATE_TEST_SUITE_P(Models, InferenceConformance, testing::Values(InferenceCase{"Service", &make_service}));

}  // namespace
}  // namespace foliot
