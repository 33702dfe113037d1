#include "node/replicas/linked_replica_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "cluster/sessions/controller_addresses.h"
#include "cluster/sessions/worker_link.h"
#include "cluster/transport/link_loop.h"
#include "foundation/platform/thread.h"

namespace foliot {
namespace {

constexpr uint32_t kFrontendsMax = 256;
constexpr uint64_t kFramesAtOnce = 16;  // partly received
constexpr uint32_t kActionsMax = 512;
constexpr uint64_t kBatchesStaged = 8;
constexpr uint64_t kStagingBytesMin = uint64_t{16} << 20;
constexpr uint32_t kModelsMax = 4;

// A container has one bucket.
uint64_t sum_of_rows(const ModelInfo& model, const std::vector<TensorSpec>& tensors) {
  uint64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) bytes += row_bytes(tensor, model.buckets.front());
  return bytes;
}

uint64_t staging_bytes(const ModelInfo& model) {
  const uint64_t batch =
      model.batch_size_max() * (sum_of_rows(model, model.inputs) + sum_of_rows(model, model.outputs));
  return std::max(kBatchesStaged * batch, kStagingBytesMin);
}

}  // namespace

class LinkedReplicaPlace::LinkedSession : public Session {
 public:
  LinkedSession(const LinkedReplicaOptions& options, const std::string& name, const std::string& kind,
                std::shared_ptr<const ModelInfo> model)
      : options_(options),
        model_(std::move(model)),
        link_({.name = fmt::format("{}/{}", options.worker, name),
               .kind = kind,
               .models_max = kModelsMax,
               .page_count = 1,
               .actions_max = kActionsMax,
               .staging_bytes = staging_bytes(*model_),
               .held_bytes = options.held_bytes,
               .drain_timeout = options.drain_timeout},
              {.log = options.log,
               .on_registered =
                   [&options, name](size_t /*models*/) {
                     options.log(Severity::kInfo, fmt::format("replica {}: registered with the controller", name));
                     options.on_registered();
                   },
               .on_drained = [this] { on_drained(); }}) {}
  ~LinkedSession() override { leave(); }

  PayloadStore& payloads() override { return link_.payloads(); }
  OutcomeSink& outcomes() override { return link_; }

  Status join(Worker& worker) override {
    FOLIOT_ASSIGN_OR_RETURN(auto tls, open_link_tls(options_.link_tls));
    loop_ = std::make_unique<LinkLoop>(LinkLoopOptions{.connection = {.role = Role::kWorker,
                                                                      .frame_bytes_max = options_.frame_bytes_max,
                                                                      .unsent_bytes_max = 4 * options_.frame_bytes_max},
                                                       .connections_max = kFrontendsMax,
                                                       .received_bytes_max = kFramesAtOnce * options_.frame_bytes_max,
                                                       .tls = std::move(tls)},
                                       link_);
    FOLIOT_ASSIGN_OR_RETURN(const uint16_t port, loop_->listen(options_.data_host + ":0"));
    const std::string& host = options_.data_address_host.empty() ? options_.data_host : options_.data_address_host;
    link_.add_model(model_);
    link_.start({&worker}, fmt::format("{}:{}", host, port), *loop_);
    FOLIOT_RETURN_IF_ERROR(keep_controllers(*loop_, options_.controller));
    FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start({.name = "replica link"}, [this] { loop_->run(); }));
    return Status();
  }

  void drain() override {
    link_.drain();
    drained_.get_future().wait();
  }

  void leave() override {
    if (loop_ != nullptr) loop_->stop();
    thread_.join();
  }

 private:
  void on_drained() {
    if (!std::exchange(is_drained_, true)) drained_.set_value();
  }

  const LinkedReplicaOptions& options_;
  const std::shared_ptr<const ModelInfo> model_;
  bool is_drained_ = false;  // of the loop's thread
  std::promise<void> drained_;
  WorkerLink link_;
  std::unique_ptr<LinkLoop> loop_;
  Thread thread_;
};

std::unique_ptr<ReplicaPlace::Session> LinkedReplicaPlace::make_session(const std::string& name,
                                                                        const std::string& kind,
                                                                        std::shared_ptr<const ModelInfo> model) {
  return std::make_unique<LinkedSession>(options_, name, kind, std::move(model));
}

}  // namespace foliot
