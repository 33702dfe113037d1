// VariantProcess: the VariantMaker that is Python code: `python -m foliot.variant_maker FOLDER`, confined as a
// container is (engine/container/container_launch.h): it reads the source and the libraries of its interpreter, and
// writes made/ alone.
//
// It ends with exit code 2 and one line where the network or the validation set is wrong, which is the job's error.
//
// Threading: any; each call has a process of its own.
#ifndef FOLIOT_NODE_REPOSITORY_VARIANT_PROCESS_H_
#define FOLIOT_NODE_REPOSITORY_VARIANT_PROCESS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "edge/jobs/variant_maker.h"
#include "foundation/base/time.h"

namespace foliot {

struct VariantProcessOptions {
  std::vector<std::string> launcher;  // the command that starts this program as a launcher of containers
  std::filesystem::path package;      // the folder of the Python package `foliot`
  std::string python = "python3";     // with numpy, onnx and onnxruntime
  uint64_t memory_bytes = uint64_t{8} << 30;
  Duration time_limit = Duration::seconds(3600);
};

class VariantProcess final : public VariantMaker {
 public:
  explicit VariantProcess(VariantProcessOptions options) : options_(std::move(options)) {}
  Status make(const RegistrationFolder& folder, const JobContext& context) override;

 private:
  const VariantProcessOptions options_;
};

}  // namespace foliot

#endif  // FOLIOT_NODE_REPOSITORY_VARIANT_PROCESS_H_
